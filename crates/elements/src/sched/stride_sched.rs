// SPDX-License-Identifier: MIT OR Apache-2.0
//! StrideSched: pulls from each input in proportion to its tickets.

use super::shares::Shares;
use castanet_element::prelude::*;

/// Each pull gives a packet of one input, and chooses inputs in proportion to their tickets.
///
/// This is stride scheduling (Waldspurger and Weihl 1995; the Click paper in TOCS 2000, section 4.1). A round has as
/// many pulls as there are tickets in all. While all inputs have packets, each round takes exactly as many packets from
/// an input as it has tickets. If an input has no packet when its turn comes, it loses that turn to the next input, and
/// does not get it back later. Inputs whose notifiers are off are not pulled from. A pull that finds no packet does not
/// change the order of turns.
///
/// The handlers `tickets0`, `tickets1`, ... show and change the tickets of each input.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets. Output 0 (pull): the packets chosen.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, STOP true) -> q :: Queue -> [0] s :: StrideSched(3, 1) -> Unqueue -> Discard;
/// RatedSource(LIMIT 2) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(name = "StrideSched", ports = "1-/1", processing = "l/l", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, takes_state = "whose turn it is, with the same tickets")]
#[class(build, lifecycle, handlers)]
pub struct StrideSched {
    args: Args,
    shares: Shares,
    signals: Vec<Signal>,
}

/// Arguments of StrideSched.
#[derive(Args)]
pub struct Args {
    /// Tickets of each input in order, at least 1.
    #[arg(rest)]
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSched {
    /// The tickets of each input, as they are now.
    #[read(merge = first)]
    fn config(&self) -> String {
        self.shares.shown()
    }
    /// The tickets of input N: its share of the packets relative to other inputs.
    #[read(each = self.shares.clients())]
    fn tickets(&self, input: usize) -> u32 {
        self.shares.tickets(input)
    }
    #[write(each = self.shares.clients())]
    fn set_tickets(&mut self, input: usize, tickets: u32) -> Result<(), HandlerError> {
        self.shares.set_tickets(input, tickets)
    }
}

impl Build for StrideSched {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let shares = Shares::parse(&args.tickets, cx.inputs, "input")?;
        Ok(StrideSched { args, shares, signals: Vec::new() })
    }
}

impl Element for StrideSched {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut place = 0;
        while let Some(input) = self.shares.get(place) {
            if self.signals.get(input).is_some_and(|s| cx.is_on(s))
                && let Some(p) = cx.pull_one(input)
            {
                self.shares.turn_at(place);
                return Some(p);
            }
            place += 1;
        }
        None
    }
}

impl Lifecycle for StrideSched {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.signals = super::signals(self.args.tickets.len(), cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.shares.go_on_from(&old.shares);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn kit(config: &str, inputs: usize, packets: &[(usize, u8)]) -> Kit<StrideSched> {
        let mut kit = Kit::with_ports(config, inputs, 1).unwrap();
        packets.iter().for_each(|&(input, data)| kit.supply(input, packet(&[data])));
        kit
    }
    fn text(packets: &[Packet]) -> String {
        packets.iter().map(|p| char::from(p.data()[0])).collect()
    }

    #[test]
    fn the_reference_sequence() {
        let packets: Vec<_> = [(0, b'a'), (1, b'b'), (2, b'c')].into_iter().flat_map(|p| [p; 4]).collect();
        for n in [1, 2, 3, 32, 256] {
            let mut kit = kit("1, 2, 3", 3, &packets);
            let mut got = String::new();
            while got.len() < 12 {
                let pulled = kit.pull(0, n);
                assert!(pulled.len() <= n && !pulled.is_empty());
                got += &text(&pulled);
            }
            assert_eq!(got, "cbccbacbbaaa");
            assert!(kit.pull(0, n).is_empty() && kit.pull(0, 0).is_empty());
        }
    }

    #[test]
    fn any_batch_gives_what_single_pulls_give() {
        for n in [2, 3, 32, 256] {
            let mut random = Random::new(11, "stride");
            let config = ["7, 1, 3", "1, 1, 1", "100, 1, 1000"][n % 3];
            let (mut one, mut many) = (kit(config, 3, &[]), kit(config, 3, &[]));
            for round in 0..300 {
                for _ in 0..random.below(12) {
                    let (input, data) = (random.below(3) as usize, random.next_u32() as u8);
                    one.supply(input, packet(&[data]));
                    many.supply(input, packet(&[data]));
                }
                let off = Note::new(2 + random.below(3) as u32);
                if round % 3 == 0 {
                    one.with(|_, cx| cx.clear_note(off));
                    many.with(|_, cx| cx.clear_note(off));
                }
                let n = 1 + random.below(n as u64) as usize;
                let want: Vec<_> = (0..n).flat_map(|_| one.pull(0, 1)).collect();
                assert_eq!(text(&many.pull(0, n)), text(&want));
            }
        }
    }

    #[test]
    fn shares_follow_the_handlers() {
        let mut kit = kit("1, 1", 2, &[]);
        for (write, want) in [(None, 500), (Some(("tickets0", "3")), 750), (Some(("tickets1", "7")), 300)] {
            if let Some((handler, value)) = write {
                kit.write(handler, value).unwrap();
                assert_eq!(kit.read(handler).unwrap(), value);
            }
            (0..2000).for_each(|i| kit.supply(i % 2, packet(&[(i % 2) as u8])));
            let zeros = kit.pull(0, 1000).iter().filter(|p| p.data()[0] == 0).count();
            assert!(zeros.abs_diff(want) <= 3, "{zeros}");
            while !kit.pull(0, 256).is_empty() {}
        }
        assert_eq!(kit.element.own_handlers().len(), 2);
        for (handler, value) in [("tickets0", "0"), ("tickets0", "x"), ("tickets0", "-1"), ("tickets2", "1")]
        {
            assert!(kit.write(handler, value).is_err(), "{handler} {value}");
        }
        assert!(kit.read("tickets2").is_err() && kit.read("tickets").is_err());
    }

    #[test]
    fn tickets_are_checked() {
        for (config, inputs, error) in [
            ("1", 2, "TICKETS: 2 numbers wanted, one for each input, not 1"),
            ("1, 2", 1, "TICKETS: 1 number wanted, one for each input, not 2"),
            ("", 1, "TICKETS: 1 number wanted, one for each input, not 0"),
            ("1, 0", 2, "TICKETS: must be at least 1"),
        ] {
            assert_eq!(Kit::<StrideSched>::with_ports(config, inputs, 1).err().unwrap(), [error]);
        }
        for config in ["-1, 1", "x, 1", "1 2, 1", "4294967296, 1"] {
            assert!(Kit::<StrideSched>::with_ports(config, 2, 1).is_err(), "{config}");
        }
    }
}
