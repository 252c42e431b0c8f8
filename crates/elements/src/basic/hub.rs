// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hub: copies packets from each port to all other ports.

use castanet_element::prelude::*;

/// Sends a copy of each packet from input N to every output except output N.
///
/// Outputs get their copies in ascending order, and the last one gets the packet itself. Copies of more than 128 bytes
/// share one buffer until one of them is modified. If no buffer is free, the copy is omitted and counted as dropped. A
/// hub with one port drops all packets.
///
/// # Ports
/// Inputs and outputs 0, 1, ... (all push): packets. There are as many inputs as outputs.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> [0] h :: Hub [0] -> Discard;
/// Idle -> [1] h [1] -> Discard;
/// Idle -> [2] h [2] -> Counter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Hub", ports = "-/=", processing = "h/h", flow = "#/[^#]", packets = "any/same")]
#[class(workers = replicate, build, ledger(makes), copies, drops(NoBuffer, SameSegment), depends = packet)]
pub struct Hub {
    ports: usize,
}

impl Build for Hub {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Hub { ports: cx.outputs })
    }
}

impl Element for Hub {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let Some(last) = (0..self.ports).rfind(|&p| p != port) else {
            return cx.drop_all(batch, Reason::SameSegment);
        };
        for output in (0..last).filter(|&p| p != port) {
            for p in batch.iter_mut() {
                cx.emit_copy(output, p);
            }
        }
        cx.forward(last, batch);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn all_outputs_but_one() {
        for ports in 2..5 {
            for input in 0..ports {
                for n in [1, 2, 3, 32u8] {
                    let mut kit = Kit::<Hub>::with_ports("", ports, ports).unwrap();
                    let out = kit.push(input, (0..n).map(|i| packet(&[i; 100])));
                    let outputs = (0..ports).filter(|&o| o != input);
                    let want: Vec<_> = outputs.flat_map(|o| (0..n).map(move |i| (o, i))).collect();
                    let got: Vec<_> = out.iter().map(|(o, p)| (*o, p.data()[99])).collect();
                    assert_eq!((got, kit.all_dropped()), (want, 0), "{ports} {input}");
                }
            }
        }
    }

    #[test]
    fn copies_do_not_see_each_others_changes() {
        let mut kit = Kit::<Hub>::with_ports("", 4, 4).unwrap();
        let mut out = kit.push(1, [packet(b"data")]);
        for (port, p) in &mut out {
            p.data_mut()[0] = b'0' + *port as u8;
        }
        let texts: Vec<_> = out.iter().map(|(_, p)| p.data().to_vec()).collect();
        assert_eq!(texts, [b"0ata", b"2ata", b"3ata"]);
    }

    #[test]
    fn one_port_leads_nowhere() {
        let mut kit = Kit::<Hub>::with_ports("", 1, 1).unwrap();
        assert!(kit.push(0, (0..3).map(|_| packet(b"x"))).is_empty());
        assert_eq!(kit.dropped(Reason::SameSegment), 3);
        assert!(Kit::<Hub>::with_ports("1", 2, 2).is_err());
    }
}
