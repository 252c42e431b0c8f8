// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rates count: packets or bytes; and the token buckets that hold bursts of either.

use castanet_element::prelude::*;
use castanet_tables::TokenBucket;

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Packets a second.
    Packets,
    /// Bytes a second.
    Bytes,
}

impl Unit {
    /// What a packet costs.
    #[inline]
    pub(crate) fn cost(self, p: &Packet) -> u64 {
        match self {
            Unit::Packets => 1,
            Unit::Bytes => p.len() as u64,
        }
    }
}

/// How much may go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// So many packets or bytes.
    Size(u32),
    /// What is due in so many nanoseconds.
    Duration(u64),
}

impl Burst {
    /// From the two arguments that exclude each other; 20 ms if neither is given.
    pub(crate) fn new(
        size: Option<u32>,
        duration: Option<Nanos>,
        size_name: &str,
    ) -> Result<Burst, ConfigError> {
        match (size, duration) {
            (Some(_), Some(_)) => Err(format!("{size_name} and BURST_DURATION exclude each other").into()),
            (Some(n), None) => Ok(Burst::Size(n)),
            (None, Some(t)) => Ok(Burst::Duration(t.0.max(0).unsigned_abs())),
            (None, None) => Ok(Burst::Duration(20_000_000)),
        }
    }

    /// A full bucket, out of which a packet may go while there is one token.
    ///
    /// A packet of any length may go while no bytes are owed and pays afterwards, so a bucket of bytes holds one token more
    /// than the burst: with `capacity + BIG` tokens of which `BIG` must be there, the levels would only be called otherwise.
    pub(crate) fn bucket(self, rate: u64, unit: Unit) -> TokenBucket {
        match (self, unit) {
            (Burst::Size(n), Unit::Packets) => TokenBucket::new(rate, u64::from(n.max(1))),
            (Burst::Duration(ns), Unit::Packets) => TokenBucket::with_duration(rate, ns),
            (Burst::Size(n), Unit::Bytes) => TokenBucket::new(rate, u64::from(n).saturating_add(1)),
            (Burst::Duration(ns), Unit::Bytes) => {
                let bytes = u128::from(rate).saturating_mul(u128::from(ns)) / 1_000_000_000;
                TokenBucket::new(rate, u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bursts() {
        let new = |size, duration: Option<i64>| Burst::new(size, duration.map(Nanos), "BURST_SIZE");
        assert_eq!(new(None, None).unwrap(), Burst::Duration(20_000_000));
        assert_eq!(new(Some(3), None).unwrap(), Burst::Size(3));
        assert_eq!(new(None, Some(-5)).unwrap(), Burst::Duration(0));
        assert!(new(Some(3), Some(1)).is_err());
        for (burst, unit, rate, capacity) in [
            (Burst::Size(0), Unit::Packets, 10, 1),
            (Burst::Size(7), Unit::Packets, 10, 7),
            (Burst::Duration(500_000_000), Unit::Packets, 10, 5),
            (Burst::Duration(1), Unit::Packets, 10, 1),
            (Burst::Size(0), Unit::Bytes, 10, 1),
            (Burst::Size(1500), Unit::Bytes, 10, 1501),
            (Burst::Duration(20_000_000), Unit::Bytes, 500, 11),
            (Burst::Duration(u64::MAX), Unit::Bytes, u64::MAX, u64::MAX),
        ] {
            assert_eq!(burst.bucket(rate, unit).capacity(), capacity, "{burst:?} {unit:?}");
        }
    }
}
