// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tee: copies packets to all outputs.

use castanet_element::prelude::*;

/// Sends a copy of each packet to every output.
///
/// Outputs get their copies in the order 0, 1, ...; the last output gets the packet itself. Copies of more than 128 bytes
/// share one buffer until one of them is modified. If no buffer is free, the copy is omitted and counted as dropped.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: a copy of each packet.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> t :: Tee -> Discard;
/// t [1] -> Counter -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "Tee", ports = "1/1-", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(build, copies, drops(NoBuffer), depends = packet)]
pub struct Tee {
    args: Args,
    last: usize,
    /// Packets on their way to an output; empty between calls.
    copies: Batch,
}

/// Arguments of Tee.
#[derive(Args)]
pub struct Args {
    /// The number of outputs, which must equal the number of connected outputs.
    n: Option<u32>,
}

impl Build for Tee {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        match args.n {
            Some(n) if n as usize != cx.outputs => Err(cx.wrong_outputs("N", n)),
            _ => Ok(Tee { args, last: cx.outputs.saturating_sub(1), copies: Batch::empty() }),
        }
    }
}

impl Element for Tee {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.made((self.last * batch.len()) as u64);
        for port in 0..self.last {
            for p in batch.iter_mut() {
                match p.copy() {
                    Some(copy) => self.copies.push(copy),
                    None => cx.count_drops(Reason::NoBuffer, 1),
                }
            }
            cx.forward(port, &mut self.copies);
        }
        cx.forward(self.last, batch);
    }
    fn push_one(&mut self, _: usize, mut p: Packet, cx: &mut Cx<'_>) {
        cx.made(self.last as u64);
        for port in 0..self.last {
            match p.copy() {
                Some(copy) => cx.emit(port, copy),
                None => cx.count_drops(Reason::NoBuffer, 1),
            }
        }
        cx.emit(self.last, p);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_output_gets_every_packet() {
        for outputs in 1..5 {
            for n in [1, 2, 3, 32u8] {
                let mut kit = Kit::<Tee>::with_ports(&outputs.to_string(), 1, outputs).unwrap();
                let out = kit.push(0, (0..n).map(|i| packet(&[i; 100])));
                let want: Vec<_> = (0..outputs).flat_map(|o| (0..n).map(move |i| (o, i))).collect();
                let got: Vec<_> = out.iter().map(|(o, p)| (*o, p.data()[99])).collect();
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn copies_do_not_see_each_others_changes() {
        let mut kit = Kit::<Tee>::with_ports("", 1, 3).unwrap();
        let mut p = packet(b"data");
        p.set_paint(7);
        let mut out = kit.push(0, [p]);
        for (i, (_, p)) in out.iter_mut().enumerate() {
            p.data_mut()[0] = b'0' + i as u8;
        }
        let texts: Vec<_> = out.iter().map(|(_, p)| (p.data().to_vec(), p.paint())).collect();
        assert_eq!(texts, [(b"0ata".to_vec(), 7), (b"1ata".to_vec(), 7), (b"2ata".to_vec(), 7)]);
    }

    #[test]
    fn the_number_must_be_right() {
        assert_eq!(Kit::<Tee>::with_ports("3", 1, 2).err().unwrap(), ["N: 3 outputs wanted, but 2 in use"]);
    }
}
