// SPDX-License-Identifier: MIT OR Apache-2.0
//! The units of rates, packets or bytes, and the token buckets that allow bursts.

use castanet_element::prelude::*;
use castanet_element::spec::Args;
use castanet_tables::{Ewma, TokenBucket};

/// The unit of a rate. Meters, shapers and splitters are generic over it, so the choice has no cost per packet.
pub trait Unit: 'static {
    /// Whether the unit is packets, so that every packet costs 1.
    const PACKETS: bool;
    /// Returns the cost of a packet.
    fn cost(p: &Packet) -> u64;
    /// Returns the cost of several packets.
    fn cost_of_all(packets: &[Packet]) -> u64;
    /// Makes an average that measures a rate.
    fn average() -> Ewma;
    /// Rounds a rate down to the resolution of the average.
    fn rounded(rate: u64) -> f64;
    /// Makes a full bucket of tokens for a burst of `n` units.
    fn bucket_of(rate: u64, n: u32) -> TokenBucket;
    /// Makes a full bucket of tokens for a burst of as many units as the rate allows in `ns` nanoseconds.
    fn bucket_for(rate: u64, ns: u64) -> TokenBucket;
}

/// Packets a second.
pub enum Packets {}

impl Unit for Packets {
    const PACKETS: bool = true;
    #[inline]
    fn cost(_: &Packet) -> u64 {
        1
    }
    #[inline]
    fn cost_of_all(packets: &[Packet]) -> u64 {
        packets.len() as u64
    }
    fn average() -> Ewma {
        Ewma::packets()
    }
    fn rounded(rate: u64) -> f64 {
        // The resolution of the average is 1/1024 packet per millisecond.
        let units = u128::from(rate) * 1024 / 1000;
        units as f64 * 1000.0 / 1024.0
    }
    fn bucket_of(rate: u64, n: u32) -> TokenBucket {
        TokenBucket::new(rate, u64::from(n.max(1)))
    }
    fn bucket_for(rate: u64, ns: u64) -> TokenBucket {
        TokenBucket::with_duration(rate, ns)
    }
}

/// Bytes a second.
///
/// A packet of any length may pass while the balance of the bucket is not negative. The bytes of the packet are
/// subtracted afterwards, so the balance may become negative. The callers let a packet pass only if the bucket has at
/// least one token. So the number of tokens is the balance plus one, and a full bucket holds one token more than the
/// burst.
pub enum Bytes {}

impl Bytes {
    /// The number of bytes by which Click's bucket is larger than the burst. In Click, a packet may pass while the
    /// bucket holds at least this number of bytes.
    const FLOOR: u64 = 131_072;
    /// The largest burst, in bytes, that is rounded as in Click. The rounding makes bursts of about this size up to
    /// 0.4% larger. For larger bursts, the rounding error would grow further.
    const ROUNDED: u64 = 1 << 24;

    /// Makes a full bucket for a burst of `bytes`.
    ///
    /// Click's bucket has 2^32 - 1 parts. Each byte takes a whole number of parts: (2^32 - 1) / (`bytes` + `FLOOR`),
    /// rounded down. So the bucket holds a little more than the burst, such as 12 bytes instead of 10. This difference
    /// affects the times at which packets pass, so it is reproduced here.
    fn bucket(rate: u64, bytes: u64) -> TokenBucket {
        if bytes > Bytes::ROUNDED {
            return TokenBucket::new(rate, bytes.saturating_add(1));
        }
        let parts_of_a_byte = u64::from(u32::MAX) / (bytes + Bytes::FLOOR);
        let held = u64::from(u32::MAX) / parts_of_a_byte;
        TokenBucket::new(rate, held - (Bytes::FLOOR - 1))
    }
}

impl Unit for Bytes {
    const PACKETS: bool = false;
    #[inline]
    fn cost(p: &Packet) -> u64 {
        p.len() as u64
    }
    #[inline]
    fn cost_of_all(packets: &[Packet]) -> u64 {
        packets.iter().map(Bytes::cost).sum()
    }
    fn average() -> Ewma {
        Ewma::bytes()
    }
    fn rounded(rate: u64) -> f64 {
        rate as f64
    }
    fn bucket_of(rate: u64, n: u32) -> TokenBucket {
        Bytes::bucket(rate, u64::from(n))
    }
    fn bucket_for(rate: u64, ns: u64) -> TokenBucket {
        let bytes = u128::from(rate).saturating_mul(u128::from(ns)) / 1_000_000_000;
        Bytes::bucket(rate, u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// The arguments of a class with a rate. Their type gives the unit of the rate.
pub trait RateArgs: Args {
    /// The unit of the rate.
    type Unit: Unit;
    /// Returns the rate, in packets or bytes a second.
    fn rate(&self) -> u64;
}

/// The arguments of a class with a rate and bursts.
pub trait BurstArgs: RateArgs {
    /// Returns how many packets or bytes may pass at once.
    fn burst(&self) -> Burst;
}

/// A rate of packets, with bursts.
#[derive(Args)]
#[args(at_most_one(burst_size, burst_duration))]
pub struct PacketRate {
    /// Packets a second.
    #[arg(handler = "rw")]
    rate: u32,
    /// The burst size as a time: after a pause, the packets that the rate allows in this time may pass at once. 20 ms
    /// if no burst is given.
    #[arg(keyword, min = Nanos(0))]
    burst_duration: Option<Nanos>,
    /// The number of packets that may pass at once after a pause.
    #[arg(keyword)]
    burst_size: Option<u32>,
}

impl RateArgs for PacketRate {
    type Unit = Packets;
    fn rate(&self) -> u64 {
        u64::from(self.rate)
    }
}
impl BurstArgs for PacketRate {
    fn burst(&self) -> Burst {
        Burst::new(self.burst_size, self.burst_duration)
    }
}

/// A rate of bytes, with bursts.
#[derive(Args)]
#[args(at_most_one(burst_bytes, burst_duration))]
pub struct ByteRate {
    /// Bytes a second.
    #[arg(handler = "rw")]
    rate: Bandwidth,
    /// The burst size as a time: after a pause, the bytes that the rate allows in this time may pass at once. 20 ms if
    /// no burst is given.
    #[arg(keyword, min = Nanos(0))]
    burst_duration: Option<Nanos>,
    /// The number of bytes that may pass at once after a pause.
    #[arg(keyword)]
    burst_bytes: Option<u32>,
}

impl RateArgs for ByteRate {
    type Unit = Bytes;
    fn rate(&self) -> u64 {
        self.rate.0
    }
}
impl BurstArgs for ByteRate {
    fn burst(&self) -> Burst {
        Burst::new(self.burst_bytes, self.burst_duration)
    }
}

/// The number of packets or bytes that may pass at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// This many packets or bytes.
    Size(u32),
    /// As many packets or bytes as the rate yields in this many nanoseconds.
    Duration(u64),
}

impl Burst {
    /// Makes a burst from two arguments, at most one of which is given; 20 ms if neither is.
    fn new(size: Option<u32>, duration: Option<Nanos>) -> Burst {
        match (size, duration) {
            (Some(n), _) => Burst::Size(n),
            (None, Some(t)) => Burst::Duration(t.0.max(0).unsigned_abs()),
            (None, None) => Burst::Duration(20_000_000),
        }
    }

    /// Makes a full bucket. A packet may pass while the bucket has at least one token.
    pub(crate) fn bucket<U: Unit>(self, rate: u64) -> TokenBucket {
        match self {
            Burst::Size(n) => U::bucket_of(rate, n),
            Burst::Duration(ns) => U::bucket_for(rate, ns),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bursts() {
        let new = |size, duration: Option<i64>| Burst::new(size, duration.map(Nanos));
        assert_eq!(new(None, None), Burst::Duration(20_000_000));
        assert_eq!(new(Some(3), None), Burst::Size(3));
        assert_eq!(new(None, Some(-5)), Burst::Duration(0));
        for (burst, rate, capacity) in [
            (Burst::Size(0), 10, 1),
            (Burst::Size(7), 10, 7),
            (Burst::Duration(500_000_000), 10, 5),
            (Burst::Duration(1), 10, 1),
        ] {
            assert_eq!(burst.bucket::<Packets>(rate).capacity(), capacity, "{burst:?} of packets");
        }
        for (burst, rate, capacity) in [
            (Burst::Size(0), 10, 5),
            (Burst::Size(1500), 10, 1501),
            (Burst::Size(5000), 10, 5005),
            (Burst::Duration(20_000_000), 500, 13),
            (Burst::Size(1 << 25), 10, (1 << 25) + 1),
            (Burst::Duration(u64::MAX), u64::MAX, u64::MAX),
        ] {
            assert_eq!(burst.bucket::<Bytes>(rate).capacity(), capacity, "{burst:?} of bytes");
        }
    }
}
