// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherEncap: puts an Ethernet header before packets.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_wire::ether::{EtherAddr, EtherHeader};

/// Puts an Ethernet header before packets.
///
/// The MAC header is marked. Frames are not padded to the minimum length of Ethernet (RFC 894), because devices pad
/// them.
///
/// # Ports
/// Input 0: packets. Output 0: Ethernet frames.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "EtherEncap", ports = "1/1", processing = "a/a", packets = "any/framed ETHERTYPE", workers = replicate)]
#[class(reconfigure = keeps, config_follows, drops(TooLong), build, lifecycle, handlers, depends = packet)]
#[class(kernel)]
pub struct EtherEncap {
    args: Args,
    header: [u8; EtherHeader::LEN],
}

/// Arguments of EtherEncap.
#[derive(Args)]
pub struct Args {
    /// The EtherType of the frames.
    #[arg(alias = "ETHT", handler = "rw")]
    ethertype: u16,
    /// Source address.
    #[arg(handler = "rw")]
    src: EtherAddr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: EtherAddr,
}

impl Args {
    fn header(&self) -> [u8; EtherHeader::LEN] {
        let [d0, d1, d2, d3, d4, d5] = self.dst.0;
        let [s0, s1, s2, s3, s4, s5] = self.src.0;
        let [t0, t1] = self.ethertype.to_be_bytes();
        [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1]
    }
}

impl Build for EtherEncap {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(EtherEncap { header: args.header(), args })
    }
}

#[handlers]
impl EtherEncap {
    /// The EtherType of the frames; old name of the handler `ethertype`.
    #[read(deprecated, merge = first)]
    fn etht(&self) -> u16 {
        self.args.ethertype
    }
    #[write]
    fn set_etht(&mut self, ethertype: u16) {
        self.args.ethertype = ethertype;
        self.header = self.args.header();
    }
}

impl Lifecycle for EtherEncap {
    fn changed(&mut self, _: &str, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.header = self.args.header();
        Ok(())
    }
}

impl Action for EtherEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(space) = p.push_header() else { return Verdict::Drop(Reason::TooLong) };
        *space = self.header;
        p.set_mac_header(0);
        Verdict::Next
    }
}

impl InKernel for EtherEncap {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.unstrip(EtherHeader::LEN as u32);
        code.store_bytes(0, &self.header);
        code.mark_mac(0);
        code.next(0);
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
        let mut kit = Kit::<EtherEncap>::new("0x0800, 02:00:00:00:00:01, 02-00-00-00-00-02").unwrap();
        for len in 0..60u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            let (h, rest) = etherparse::Ethernet2Header::from_slice(out[0].1.data()).unwrap();
            assert_eq!((h.source, h.destination), ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]));
            assert_eq!((h.ether_type.0, rest, out[0].1.mac_offset()), (0x800, &data[..], Some(0)));
        }
    }

    #[test]
    fn without_headroom() {
        let mut kit = Kit::<EtherEncap>::new("0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2").unwrap();
        let mut p = Packet::copy_with_headroom(13, &[7; 9]).unwrap();
        p.set_network_header(0, 9);
        let out = kit.act([p]);
        assert_eq!((out[0].1.len(), out[0].1.network_offset()), (23, Some(14)));
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<EtherEncap>::new("ETHERTYPE 1, SRC 2:0:0:0:0:1, DST 2:0:0:0:0:2").unwrap();
        assert_eq!(kit.read("etht").unwrap(), kit.read("ethertype").unwrap());
        kit.write("etht", "0x0806").unwrap();
        kit.write("src", "4:0:0:0:0:1").unwrap();
        kit.write("dst", "6:0:0:0:0:1").unwrap();
        let want = [6, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 1, 8, 6];
        assert_eq!(kit.act([packet(&[])])[0].1.data(), want);
        kit.write("ethertype", "2048").unwrap();
        assert_eq!(kit.act([packet(&[])])[0].1.data()[12..], [8, 0]);
        assert_eq!(kit.read("src").unwrap(), "04-00-00-00-00-01");
        assert!(kit.write("etht", "70000").is_err() && kit.write("src", "x").is_err());
        assert!(Kit::<EtherEncap>::new("0x0800, 2:0:0:0:0:1").is_err());
    }
}
