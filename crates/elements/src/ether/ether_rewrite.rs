// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherRewrite: sets the addresses of frames.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_wire::ether::EtherAddr;

/// Sets the source and the destination address of Ethernet frames.
///
/// Packets too short for both addresses are dropped.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: the frames with the new addresses.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherRewrite(02:00:00:00:00:01, 02:00:00:00:00:02) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "EtherRewrite", ports = "1/1", processing = "a/a", packets = "ether/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, drops(TooShort), depends = packet)]
#[class(kernel)]
pub struct EtherRewrite {
    args: Args,
}

/// Arguments of EtherRewrite.
#[derive(Args)]
pub struct Args {
    /// Source address.
    #[arg(handler = "rw")]
    src: EtherAddr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: EtherAddr,
}

impl Action for EtherRewrite {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        if p.len() < 12 {
            return Verdict::Drop(Reason::TooShort);
        }
        if let Some(h) = p.data_mut().first_chunk_mut::<12>() {
            let [d0, d1, d2, d3, d4, d5] = self.args.dst.0;
            let [s0, s1, s2, s3, s4, s5] = self.args.src.0;
            *h = [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5];
        }
        Verdict::Next
    }
}

impl InKernel for EtherRewrite {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let short = code.label();
        code.need(12, short);
        code.store_bytes(0, &self.args.dst.0);
        code.store_bytes(6, &self.args.src.0);
        code.next(0);
        code.bind(short);
        code.drop(Reason::TooShort as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        let mut kit = Kit::<EtherRewrite>::new("2:0:0:0:0:1, 2:0:0:0:0:2").unwrap();
        for len in 0..60u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            assert_eq!(out.len(), usize::from(len >= 12));
            for (_, p) in out {
                assert_eq!(p.data()[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
                assert_eq!(p.data()[12..], data[12..]);
            }
        }
        assert_eq!(kit.dropped(Reason::TooShort), 12);
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<EtherRewrite>::new("SRC 2:0:0:0:0:1, DST 2:0:0:0:0:2").unwrap();
        kit.write("src", "4:0:0:0:0:1").unwrap();
        kit.write("dst", "6:0:0:0:0:1").unwrap();
        assert_eq!(["src", "dst"].map(|h| kit.read(h).unwrap()), ["04-00-00-00-00-01", "06-00-00-00-00-01"]);
        let out = kit.act((0..3).map(|_| packet(&[0; 12])));
        assert!(out.iter().all(|(_, p)| p.data() == [6, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 1]));
        assert!(Kit::<EtherRewrite>::new("2:0:0:0:0:1").is_err());
    }
}
