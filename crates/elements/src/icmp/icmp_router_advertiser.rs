// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPRouterAdvertiser: sends router advertisements (RFC 1256) to hosts.

#[cfg(test)]
mod tests;

use crate::transport::segment;
use castanet_element::prelude::*;
use castanet_element::random::Random;
use castanet_wire::icmp::{self, IcmpHeader, kind};
use castanet_wire::ipv4::{self, Ipv4Header};
use castanet_wire::{checksum, ipv4::protocol::ICMP};
use std::net::Ipv4Addr;

/// Sends router advertisements (RFC 1256), by which hosts find their router, on one interface.
///
/// An advertisement contains the router's address on that interface, and the lifetime of the address. Advertisements
/// are sent at random intervals of MIN_INTERVAL to MAX_INTERVAL; the first three are at most 16 s apart. A router
/// solicitation on input 0 is answered by another advertisement to DESTINATION, after a random delay of up to 2 s.
/// Malformed solicitations (RFC 1256 section 4.2) are dropped.
///
/// The time to live is 1. The destination address annotation is set, so that an ARPQuerier may follow.
///
/// # Ports
/// Input 0 (optional): IP packets with marked network header. Output 0: advertisements.
///
/// # Example
/// ```click
/// routers :: ICMPRouterAdvertiser(10.0.0.1/24, MAX_INTERVAL 4)
///     -> arp :: ARPQuerier(10.0.0.1/24, 02-00-00-00-00-01) -> Print(router) -> Discard;
/// Idle -> [1] arp;
/// Idle -> routers;
/// DriverManager(write routers.advertise, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "ICMPRouterAdvertiser", ports = "0-1/1", processing = "h/h", packets = "ip/ip", workers = exclusive)]
#[class(build, lifecycle, handlers, drops(Consumed, Discarded, BadSource, NoIpHeader))]
pub struct IcmpRouterAdvertiser {
    args: Args,
    /// Advertisements sent.
    #[count(unit = "packets")]
    count: Count,
    random: Random,
    /// The time at which the next advertisement is sent, in nanoseconds.
    next: i64,
    /// The minimum and maximum interval, in nanoseconds, and the lifetime, in seconds.
    times: (i64, i64, u16),
}

/// Arguments of ICMPRouterAdvertiser.
#[derive(Args)]
pub struct Args {
    /// The router's address on the interface, with the prefix length of its network.
    address: Prefix,
    /// The destination of advertisements: 224.0.0.1 (all hosts) or 255.255.255.255.
    #[arg(keyword, default = ALL_HOSTS, show = "224.0.0.1")]
    destination: Ipv4Addr,
    /// The maximum time between advertisements, 4 to 1800 s.
    #[arg(keyword, default = Nanos(600 * SECOND), show = "600s", min = Nanos(4 * SECOND), max = Nanos(1800 * SECOND))]
    max_interval: Nanos,
    /// The minimum time between advertisements, at least 3 s; three quarters of MAX_INTERVAL if not given.
    #[arg(keyword)]
    min_interval: Option<Nanos>,
    /// How long hosts may use the address after an advertisement, up to 9000 s; three times MAX_INTERVAL if not
    /// given.
    #[arg(keyword)]
    lifetime: Option<Nanos>,
    /// The preference of the address: hosts choose the router with the greatest value as default router, and never one
    /// with the least possible value.
    #[arg(keyword, default = 0, handler = "rw")]
    preference: i32,
    /// Whether advertisements are sent.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
}

const SECOND: i64 = 1_000_000_000;
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
// Constants from RFC 1256 section 6, with times in nanoseconds.
const INITIAL: u64 = 3;
const MAX_INITIAL_INTERVAL: i64 = 16 * SECOND;
const MAX_RESPONSE_DELAY: i64 = 2 * SECOND;
/// The number of 32-bit words per router in an advertisement: its address and its preference.
const ENTRY: u32 = 2;
const LENGTH: usize = Ipv4Header::LEN + IcmpHeader::LEN + 4 * ENTRY as usize;

impl Build for IcmpRouterAdvertiser {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        // RFC 1256 section 4.1 gives the limits of these times, and of MAX_INTERVAL.
        let most = args.max_interval.0;
        let least = args.min_interval.map_or(most / 4 * 3, |t| t.0);
        if !(3 * SECOND..=most).contains(&least) {
            return Err("MIN_INTERVAL: must be between 3 s and MAX_INTERVAL".into());
        }
        let life = args.lifetime.map_or(3 * most, |t| t.0);
        if !(most..=9000 * SECOND).contains(&life) {
            return Err("LIFETIME: must be between MAX_INTERVAL and 9000 s".into());
        }
        if !matches!(args.destination, ALL_HOSTS | Ipv4Addr::BROADCAST) {
            return Err("DESTINATION: must be 224.0.0.1 or 255.255.255.255".into());
        }
        let seconds = u16::try_from(life / SECOND).unwrap_or(u16::MAX);
        let (count, random) = (Count::default(), cx.random());
        Ok(IcmpRouterAdvertiser { args, count, random, next: i64::MAX, times: (least, most, seconds) })
    }
}

impl IcmpRouterAdvertiser {
    /// Returns a random time from `least` to `most`, in nanoseconds.
    fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = most.saturating_sub(least).unsigned_abs();
        least.saturating_add_unsigned(self.random.below(span.saturating_add(1)))
    }

    /// Returns a random time from one advertisement to the next, in nanoseconds. The first ones are close together.
    fn interval(&mut self) -> i64 {
        let time = self.between(self.times.0, self.times.1);
        if self.count.get() < INITIAL { time.min(MAX_INITIAL_INTERVAL) } else { time }
    }

    fn advertisement(&self) -> Option<Packet> {
        let mut p = Packet::new(LENGTH)?;
        let (from, to) = (self.args.address.addr.to_bits(), self.args.destination.to_bits());
        // `LENGTH` is 36, so it fits in 16 bits.
        let mut ip = Ipv4Header::new(ICMP, from, to, LENGTH as u16, 1);
        ip.set_checksum20();
        // The second word of the message holds the number of addresses, the number of words per address, and the
        // lifetime.
        let message =
            IcmpHeader::new(kind::ROUTER_ADVERT, 0, 1 << 24 | ENTRY << 16 | u32::from(self.times.2));
        let preference = self.args.preference.to_be_bytes();
        let parts = [&ip.to_bytes()[..], &message.to_bytes(), &from.to_be_bytes(), &preference];
        let bytes = parts.into_iter().flatten();
        p.data_mut().iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(to);
        icmp::set_checksum(p.transport_mut().unwrap_or_default());
        Some(p)
    }

    /// Sends an advertisement, and sets the timer for the next one.
    fn send(&mut self, cx: &mut Cx<'_>) {
        if let Some(mut p) = self.advertisement() {
            let now = cx.now();
            p.set_timestamp(now);
            self.count.add(1);
            cx.entered(1);
            cx.emit(0, p);
        }
        let wait = self.interval();
        self.set(wait, cx);
    }

    fn set(&mut self, wait: i64, cx: &mut Cx<'_>) {
        self.next = cx.now().saturating_add(wait);
        cx.set_timer(0, self.next);
    }

    /// Checks that a packet is a valid router solicitation (RFC 1256 section 4.2). The error is the reason to drop the
    /// packet.
    fn asks(&self, p: &Packet) -> Result<(), Reason> {
        let (ip, message) = p.network().and_then(segment).ok_or(Reason::NoIpHeader)?;
        let header = IcmpHeader::from_prefix(message).ok_or(Reason::Discarded)?;
        let right = ip.protocol == ICMP
            && !ip.is_fragment()
            && (header.kind, header.code) == (kind::ROUTER_SOLICIT, 0)
            && checksum::sum(message) == 0xffff;
        if !right {
            return Err(Reason::Discarded);
        }
        let source = Ipv4Addr::from_bits(ip.src.get());
        let neighbour = self.args.address.contains(source) && !ipv4::is_multicast(ip.src.get());
        if source.is_unspecified() || neighbour { Ok(()) } else { Err(Reason::BadSource) }
    }
}

impl Element for IcmpRouterAdvertiser {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        if self.args.active {
            self.send(cx);
        }
    }
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            match self.asks(&p) {
                Ok(()) => {
                    cx.drop(p, Reason::Consumed);
                    let wait = self.between(0, MAX_RESPONSE_DELAY);
                    // If the next advertisement is due before the latest time for an answer, that advertisement is the
                    // answer.
                    if self.args.active && cx.now().saturating_add(MAX_RESPONSE_DELAY) < self.next {
                        self.set(wait, cx);
                    }
                }
                Err(reason) => cx.drop(p, reason),
            }
        }
    }
}

#[handlers]
impl IcmpRouterAdvertiser {
    /// Sends an advertisement now.
    #[write(button)]
    fn advertise(&mut self, cx: &mut Cx<'_>) {
        self.send(cx);
    }
}

impl Lifecycle for IcmpRouterAdvertiser {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.args.active {
            let wait = self.between(0, MAX_INITIAL_INTERVAL.min(self.times.1));
            self.next = cx.now().saturating_add(wait);
            cx.set_timer(0, self.next);
        }
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.args.active {
            let wait = self.between(0, MAX_RESPONSE_DELAY);
            self.set(wait, cx);
        }
        Ok(())
    }
}
