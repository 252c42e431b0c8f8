// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateIPAddrPair: numbers packets by address pair, in the aggregate annotation.

use castanet_element::prelude::*;
use castanet_spec::anno;
use std::collections::HashMap;

/// Sets the aggregate annotation to a number for each IP address pair: 1, 2, ... in the order of their first packets.
///
/// Both directions of a pair have the same number. The paint annotation is set to 0 in the direction of the first
/// packet and to 1 in the other direction. After a pair has been idle for longer than TIMEOUT, its next packet gets a
/// new number. With a TIMEOUT of 0, pairs never expire. Times are the packets' timestamps, or the current time for
/// packets without a timestamp. Expired pairs are removed every REAP seconds. At most 1048576 pairs are stored: packets
/// of further pairs leave by output 1 until some pairs are removed.
///
/// # Ports
/// Input 0: IP packets. Output 0: the same packets. Output 1 (optional): packets without a number; without
/// output 1 they are dropped.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data src dst
/// 1.0.0.1 2.0.0.2
/// 2.0.0.2 1.0.0.1
/// 1.0.0.1 2.0.0.3
/// ", STOP true) -> AggregateIPAddrPair -> IPPrint(pair, AGGREGATE true, PAINT true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregateIPAddrPair", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = exclusive)]
#[class(takes_state = "the pairs and their numbers")]
#[class(lifecycle, handlers, drops(NoIpHeader, NoMatch))]
pub struct AggregateIpAddrPair {
    args: Args,
    pairs: HashMap<[u32; 2], Pair>,
    last: u32,
    reaped: Option<i64>,
}

/// Arguments of AggregateIPAddrPair.
#[derive(Args)]
pub struct Args {
    /// How long a pair may be idle before it expires; 0 for no limit.
    #[arg(keyword, default = Nanos(0), show = "0", min = Nanos(0))]
    timeout: Nanos,
    /// The interval at which expired pairs are removed.
    #[arg(keyword, default = Nanos(1_200_000_000_000), show = "1200", min = Nanos(0))]
    reap: Nanos,
}

/// A pair of addresses.
struct Pair {
    aggregate: u32,
    /// Whether the first packet of the pair went from the lower address to the higher.
    up: bool,
    seen: i64,
}

/// Largest number of pairs that are stored.
const MOST: usize = 1 << 20;

impl AggregateIpAddrPair {
    fn is_over(&self, pair: &Pair, now: i64) -> bool {
        self.args.timeout.0 > 0 && now.saturating_sub(pair.seen) > self.args.timeout.0
    }
    fn reap(&mut self, now: i64) {
        let due = self.reaped.is_none_or(|t| now.saturating_sub(t) >= self.args.reap.0.max(1_000_000_000));
        if due && self.args.timeout.0 > 0 {
            let timeout = self.args.timeout.0;
            self.pairs.retain(|_, p| now.saturating_sub(p.seen) <= timeout);
        }
        if due {
            self.reaped = Some(now);
        }
    }
}

impl Action for AggregateIpAddrPair {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(ip) = p.ip_header() else { return cx.out_or(1, Reason::NoIpHeader) };
        let [src, dst] =
            [[ip[12], ip[13], ip[14], ip[15]], [ip[16], ip[17], ip[18], ip[19]]].map(u32::from_be_bytes);
        let now = match p.timestamp() {
            0 => cx.recent(),
            t => t,
        };
        self.reap(now);
        let (key, up) = ([src.min(dst), src.max(dst)], src <= dst);
        let known = self.pairs.get(&key).filter(|pair| !self.is_over(pair, now)).map(|p| (p.aggregate, p.up));
        let (aggregate, first_up) = match known {
            Some(known) => known,
            None if self.pairs.len() >= MOST && !self.pairs.contains_key(&key) => {
                return cx.out_or(1, Reason::NoMatch);
            }
            None => {
                self.last = self.last.wrapping_add(1).max(1);
                (self.last, up)
            }
        };
        self.pairs.insert(key, Pair { aggregate, up: first_up, seen: now });
        p.set_anno_u32(anno::AGGREGATE, aggregate);
        p.set_paint(u8::from(up != first_up));
        Verdict::Next
    }
}

#[handlers]
impl AggregateIpAddrPair {
    /// Forgets all pairs.
    #[write(button)]
    fn clear(&mut self) {
        self.pairs.clear();
        self.last = 0;
    }
}

impl Lifecycle for AggregateIpAddrPair {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        std::mem::swap(&mut self.pairs, &mut old.pairs);
        (self.last, self.reaped) = (old.last, old.reaped);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn ip(second: i64, src: u32, dst: u32) -> Packet {
        let mut data = vec![0x45; 12];
        data.extend(src.to_be_bytes());
        data.extend(dst.to_be_bytes());
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p.set_timestamp(second * 1_000_000_000);
        p
    }
    fn run(kit: &mut Kit<AggregateIpAddrPair>, p: Packet) -> (u32, u8) {
        let p = kit.act1(p).1;
        (p.anno_u32(anno::AGGREGATE), p.paint())
    }

    #[test]
    fn numbers_and_directions() {
        let mut k = Kit::<AggregateIpAddrPair>::new("").unwrap();
        for (src, dst, want) in
            [(5, 3, (1, 0)), (3, 5, (1, 1)), (3, 3, (2, 0)), (3, 6, (3, 0)), (5, 3, (1, 0))]
        {
            assert_eq!(run(&mut k, ip(1, src, dst)), want);
        }
        assert_eq!(run(&mut k, ip(1_000_000, 5, 3)), (1, 0), "no timeout");
        k.write("clear", "").unwrap();
        assert_eq!(run(&mut k, ip(1, 3, 5)), (1, 0));
        for n in 0..20 {
            let mut p = ip(1, 1, 2);
            p.truncate(n);
            assert_eq!(k.act([p]).len(), 0);
        }
        assert_eq!(k.dropped(Reason::NoIpHeader), 20);
    }

    #[test]
    fn pairs_end_and_are_forgotten() {
        let mut k = Kit::<AggregateIpAddrPair>::new("TIMEOUT 5, REAP 10").unwrap();
        assert_eq!(
            (run(&mut k, ip(1, 1, 2)).0, run(&mut k, ip(6, 1, 2)).0, run(&mut k, ip(12, 2, 1))),
            (1, 1, (2, 0))
        );
        for i in 0..100 {
            run(&mut k, ip(13, 1, 10 + i));
        }
        run(&mut k, ip(30, 7, 8));
        assert_eq!(k.element.pairs.len(), 1);
    }
}
