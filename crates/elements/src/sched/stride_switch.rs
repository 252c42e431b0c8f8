// SPDX-License-Identifier: MIT OR Apache-2.0
//! StrideSwitch: sends packets to each output in proportion to its tickets.

use super::shares::Shares;
use castanet_element::prelude::*;

/// Sends each packet to one output, and chooses outputs in proportion to their tickets.
///
/// This is stride scheduling (Waldspurger and Weihl 1995). A round has as many packets as there are tickets in
/// all. In each round, an output gets exactly as many packets as it has tickets. The handlers `tickets0`,
/// `tickets1`, ... show and change the tickets of each output.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets, each on one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 40, STOP true) -> s :: StrideSwitch(3, 1) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StrideSwitch", ports = "1/1-", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, takes_state = "whose turn it is, with the same tickets")]
#[class(build, lifecycle, handlers, depends = order)]
pub struct StrideSwitch {
    args: Args,
    shares: Shares,
}

/// Arguments of StrideSwitch.
#[derive(Args)]
pub struct Args {
    /// Tickets of each output in order, at least 1.
    #[arg(rest)]
    tickets: Vec<u32>,
}

#[handlers]
impl StrideSwitch {
    /// The tickets of each output, as they are now.
    #[read(merge = first)]
    fn config(&self) -> String {
        self.shares.shown()
    }
    /// The tickets of output N: its share of the packets relative to other outputs.
    #[read(each = self.shares.clients())]
    fn tickets(&self, output: usize) -> u32 {
        self.shares.tickets(output)
    }
    #[write(each = self.shares.clients())]
    fn set_tickets(&mut self, output: usize, tickets: u32) -> Result<(), HandlerError> {
        self.shares.set_tickets(output, tickets)
    }
}

impl Build for StrideSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let shares = Shares::parse(&args.tickets, cx.outputs, "output")?;
        Ok(StrideSwitch { args, shares })
    }
}

impl StrideSwitch {
    /// Returns the output of the next packet, and advances the turn.
    #[inline]
    fn output(&mut self) -> usize {
        // `get(0)` always returns an output, because the class has at least one output.
        let output = self.shares.get(0).unwrap_or(0);
        self.shares.turn_at(0);
        output
    }
}

impl Element for StrideSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.emit_each(batch, Reason::NoPort, |_| Ok(self.output()));
    }
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        cx.emit(self.output(), p);
    }
}

impl Lifecycle for StrideSwitch {
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
    use castanet_testkit::StrideList;

    #[test]
    fn packets_follow_the_tickets() {
        for n in [1, 2, 3, 32, 256] {
            let mut kit = Kit::<StrideSwitch>::with_ports("1, 2, 3", 1, 3).unwrap();
            let mut list = StrideList::new(&[1, 2, 3]);
            let mut number = 0u32;
            for _ in 0..20 {
                let mut want: Vec<_> =
                    (0..n).map(|i| (list.turn().unwrap(), (number + i).to_be_bytes().to_vec())).collect();
                // The kit returns packets by output, and in order within each output.
                want.sort_by_key(|w| w.0);
                let got = kit.push(0, (number..number + n).map(|i| packet(&i.to_be_bytes())));
                let got: Vec<_> = got.iter().map(|(o, p)| (*o, p.data().to_vec())).collect();
                assert_eq!(got, want);
                number += n;
            }
            assert_eq!(kit.all_dropped(), 0);
        }
    }

    #[test]
    fn tickets_are_checked_and_changed() {
        let mut kit = Kit::<StrideSwitch>::with_ports("1, 1", 1, 2).unwrap();
        assert_eq!(
            kit.element.own_handlers(),
            [
                ("tickets0".into(), castanet_spec::HandlerFlags::READ_WRITE),
                ("tickets1".into(), castanet_spec::HandlerFlags::READ_WRITE)
            ]
        );
        kit.write("tickets1", " 4 ").unwrap();
        assert_eq!((kit.read("tickets0"), kit.read("tickets1")), (Ok("1".into()), Ok("4".into())));
        let out = kit.push(0, (0..100).map(|_| packet(b"")));
        assert!(out.iter().filter(|o| o.0 == 1).count().abs_diff(80) <= 1);
        assert!(kit.write("tickets1", "0").is_err() && kit.write("tickets2", "1").is_err());
        let error = "TICKETS: 2 numbers wanted, one for each output, not 3";
        assert_eq!(Kit::<StrideSwitch>::with_ports("1, 1, 1", 1, 2).err().unwrap(), [error]);
        assert!(Kit::<StrideSwitch>::with_ports("1, 0", 1, 2).is_err());
    }
}
