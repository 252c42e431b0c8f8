// SPDX-License-Identifier: MIT OR Apache-2.0
//! TallySwitch: classifies packets by one byte and counts them.

use castanet_element::prelude::*;

/// Sends packets to the output whose number is the byte at OFFSET, and counts them.
///
/// Packets that are too short are dropped, and so are packets whose byte is not the number of an output.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets whose byte is the number of the output.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<00 01>, LIMIT 5, STOP true) -> t :: TallySwitch(1) -> Discard;
/// t [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TallySwitch", ports = "1/1-", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(build, handlers, drops(TooShort, NoMatch))]
pub struct TallySwitch {
    args: Args,
    tally: Vec<Count>,
}

/// Arguments of TallySwitch.
#[derive(Args)]
pub struct Args {
    /// Offset of the byte from the start of the packet.
    #[arg(default = 0)]
    offset: u32,
}

impl Build for TallySwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(TallySwitch { args, tally: vec![Count::default(); cx.outputs] })
    }
}

#[handlers]
impl TallySwitch {
    /// Packets of each output, one line per output.
    #[read]
    fn tally(&self) -> Table {
        Table(self.tally.iter().enumerate().map(|(port, n)| format!("{port} {}\n", n.get())).collect())
    }
    /// Sets the tally to 0.
    #[write(button)]
    fn reset(&mut self) {
        self.tally.fill(Count::default());
    }
}

impl Element for TallySwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let Some(&byte) = p.data().get(self.args.offset as usize) else {
                cx.drop(p, Reason::TooShort);
                continue;
            };
            let port = usize::from(byte);
            if let Some(count) = self.tally.get_mut(port) {
                count.add(1);
            }
            cx.emit_or(port, p, Reason::NoMatch);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packets_go_by_their_byte() {
        let mut kit = Kit::<TallySwitch>::with_ports("OFFSET 2", 1, 3).unwrap();
        let packets: [&[u8]; 7] = [b"", b"ab", b"ab\0", b"ab\x01", b"ab\x02", b"ab\x03", b"ab\x02rest"];
        let out: Vec<_> =
            kit.push(0, packets.map(packet)).into_iter().map(|(port, p)| (port, p.len())).collect();
        assert_eq!(out, [(0, 3), (1, 3), (2, 3), (2, 7)]);
        assert_eq!((kit.dropped(Reason::TooShort), kit.dropped(Reason::NoMatch)), (2, 1));
        assert_eq!(kit.read("tally").unwrap(), "0 1\n1 1\n2 2\n");
        kit.write("reset", "").unwrap();
        assert_eq!(kit.read("tally").unwrap(), "0 0\n1 0\n2 0\n");
    }

    #[test]
    fn batches_of_any_size_give_the_same() {
        for size in [1, 2, 3, 32, 256] {
            let mut kit = Kit::<TallySwitch>::with_ports("", 1, 2).unwrap();
            let all: Vec<_> = (0..256u16).map(|i| [(i % 4) as u8]).collect();
            let mut out = 0;
            for some in all.chunks(size) {
                out += kit.push(0, some.iter().map(|b| packet(b))).len() as u64;
            }
            assert_eq!((out, kit.all_dropped()), (128, 128), "{size}");
        }
    }

    #[test]
    fn argument_errors() {
        assert!(Kit::<TallySwitch>::new("x").is_err());
        assert!(Kit::<TallySwitch>::new("1, 2").is_err());
    }
}
