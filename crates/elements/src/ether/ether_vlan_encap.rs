// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherVLANEncap: puts an Ethernet header with a VLAN tag before packets.

use super::vlan::{TAG, TagArgs, Tagged, Tagging};
use castanet_element::kernel::{Code, Lowered, Size, Value};
use castanet_element::prelude::*;
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};

/// Puts an Ethernet header with an IEEE 802.1Q tag before packets.
///
/// The tag is either VLAN_TCI (a number, or `ANNO` for the VLAN annotation), or made of VLAN_ID and VLAN_PCP. If
/// VLAN_PCP is given, it replaces the priority in VLAN_TCI. Packets whose VLAN is NATIVE_VLAN get a header without a
/// tag. The MAC header is marked.
///
/// # Ports
/// Input 0: packets. Output 0: Ethernet frames.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherVLANEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02, VLAN_ID 7) -> Print(tagged) -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "EtherVLANEncap",
    aliases("EtherVlanEncap"),
    ports = "1/1",
    processing = "a/a",
    packets = "any/framed"
)]
#[class(workers = replicate, drops(TooLong))]
#[class(reconfigure = keeps, config_follows, handlers, depends = packet)]
#[class(kernel)]
pub struct EtherVlanEncap {
    #[engine]
    tagging: Tagging<Args>,
}

/// Arguments of EtherVLANEncap.
#[derive(Args)]
pub struct Args {
    /// The EtherType of the payload, after the tag.
    #[arg(handler = "rw")]
    ethertype: u16,
    /// Source address.
    #[arg(handler = "rw")]
    src: EtherAddr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: EtherAddr,
    #[arg(flatten)]
    tag: TagArgs,
}

impl Tagged for Args {
    fn tag(&self) -> &TagArgs {
        &self.tag
    }
}

#[handlers]
impl EtherVlanEncap {
    /// The configuration string, with the current values of the arguments.
    #[read(merge = first)]
    fn config(&self) -> String {
        let Args { ethertype, src, dst, .. } = &self.tagging.args;
        format!("{ethertype}, {src}, {dst}, {}", self.tagging.arguments())
    }
}

impl Action for EtherVlanEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let tci = self.tagging.tag.of(p);
        let [d0, d1, d2, d3, d4, d5] = self.tagging.args.dst.0;
        let [s0, s1, s2, s3, s4, s5] = self.tagging.args.src.0;
        let [e0, e1] = self.tagging.args.ethertype.to_be_bytes();
        let done = if self.tagging.is_native(tci) {
            p.push_header().map(|h| *h = [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, e0, e1])
        } else {
            let ([v0, v1], [t0, t1]) = (ethertype::VLAN.to_be_bytes(), tci.to_be_bytes());
            p.push_header().map(|h| {
                *h = [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, v0, v1, t0, t1, e0, e1];
            })
        };
        if done.is_none() {
            return Verdict::Drop(Reason::TooLong);
        }
        p.set_mac_header(0);
        Verdict::Next
    }
}

impl InKernel for EtherVlanEncap {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Args { ethertype: kind, src, dst, .. } = &self.tagging.args;
        let native = code.label();
        let tci = self.tagging.lower(code, native);
        let put = |code: &mut Code<'_>, tci: Option<Value>| {
            let length = EtherHeader::LEN + if tci.is_some() { TAG } else { 0 };
            code.unstrip(length as u32);
            code.store_bytes(0, &dst.0);
            code.store_bytes(6, &src.0);
            if let Some(tci) = tci {
                code.store_bytes(12, &ethertype::VLAN.to_be_bytes());
                code.store(14, Size::Half, tci);
            }
            code.store_bytes(length as i32 - 2, &kind.to_be_bytes());
            code.mark_mac(0);
            code.next(0);
        };
        put(code, Some(tci));
        code.bind(native);
        put(code, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ether::vlan;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        let mut kit =
            Kit::<EtherVlanEncap>::new("0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2, VLAN_ID 7, VLAN_PCP 5").unwrap();
        for len in 0..60u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            let (link, rest) = etherparse::Ethernet2Header::from_slice(out[0].1.data()).unwrap();
            let (tag, rest) = etherparse::SingleVlanHeader::from_slice(rest).unwrap();
            assert_eq!((link.source, link.destination), ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]));
            assert_eq!((tag.vlan_id.value(), tag.pcp.value(), tag.ether_type.0), (7, 5, 0x800));
            assert_eq!((rest, out[0].1.mac_offset()), (&data[..], Some(0)));
        }
    }

    #[test]
    fn the_native_vlan_has_no_tag() {
        let mut kit = Kit::<EtherVlanEncap>::new("0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2, ANNO").unwrap();
        for (anno, len) in [(0, 14), (0xe000, 14), (1, 18), (0xffff, 18)] {
            let mut p = packet(b"");
            vlan::annotate(&mut p, anno);
            let p = &kit.act([p])[0].1;
            assert_eq!(p.len(), len);
            assert_eq!(vlan::tag(p.data(), 0x8100), Ok((len == 18).then_some(anno)));
        }
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<EtherVlanEncap>::new("1, 2:0:0:0:0:1, 2:0:0:0:0:2, 7, 1").unwrap();
        for (handler, text, shown) in [
            ("ethertype", "0x86dd", "34525"),
            ("src", "4:0:0:0:0:1", "04-00-00-00-00-01"),
            ("dst", "6:0:0:0:0:1", "06-00-00-00-00-01"),
            ("vlan_tci", "0x2007", "8199"),
            ("vlan_id", "8", "8"),
            ("vlan_pcp", "2", "2"),
            ("native_vlan", "-1", "-1"),
        ] {
            kit.write(handler, text).unwrap();
            assert_eq!(kit.read(handler).unwrap(), shown);
        }
        let shown = "34525, 04-00-00-00-00-01, 06-00-00-00-00-01, VLAN_ID 8, VLAN_PCP 2, NATIVE_VLAN -1";
        assert_eq!(kit.read("config").unwrap(), shown);
        assert!(Kit::<EtherVlanEncap>::new(shown).is_ok());
        let want = [6, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 1, 0x81, 0, 0x40, 8, 0x86, 0xdd];
        assert_eq!(kit.act([packet(b"")])[0].1.data(), want);
        assert!(Kit::<EtherVlanEncap>::new("1, 2:0:0:0:0:1").is_err());
    }
}
