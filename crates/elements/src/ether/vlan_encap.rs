// SPDX-License-Identifier: MIT OR Apache-2.0
//! VLANEncap: puts 802.1Q tags into frames.

use super::vlan::{self, TagArgs, Tagged, Tagging};
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;
use castanet_wire::ether::{EtherHeader, ethertype};

/// Puts an IEEE 802.1Q tag into Ethernet frames.
///
/// The tag follows the two addresses. It is either VLAN_TCI (a number, or `ANNO` for the VLAN annotation), or made of
/// VLAN_ID and VLAN_PCP. If VLAN_PCP is given, it replaces the priority in VLAN_TCI. Frames whose VLAN is NATIVE_VLAN
/// pass without a tag.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: the frames with their tag.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
///     -> VLANEncap(VLAN_ID 7, VLAN_PCP 5) -> Print(tagged) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "VLANEncap", ports = "1/1", processing = "a/a", packets = "ether/framed", workers = replicate)]
#[class(drops(TooShort, TooLong), handlers, depends = packet)]
#[class(kernel)]
pub struct VlanEncap {
    #[engine]
    tagging: Tagging<Args>,
}

/// Arguments of VLANEncap.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    tag: TagArgs,
    /// The EtherType of the tag.
    #[arg(keyword, show = "0x8100", handler = "rw")]
    ethertype: Option<u16>,
}

impl Tagged for Args {
    fn tag(&self) -> &TagArgs {
        &self.tag
    }
}

#[handlers]
impl VlanEncap {
    /// The configuration string, with the current values of the arguments.
    #[read(merge = first)]
    fn config(&self) -> String {
        let kind = self.tagging.args.ethertype.map(|t| format!(", ETHERTYPE {t}"));
        self.tagging.arguments() + &kind.unwrap_or_default()
    }
}

impl Action for VlanEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let tci = self.tagging.tag.of(p);
        if self.tagging.is_native(tci) {
            return Verdict::Next;
        }
        match vlan::put(p, self.tagging.args.ethertype.unwrap_or(ethertype::VLAN), tci) {
            Ok(()) => Verdict::Next,
            Err(reason) => Verdict::Drop(reason),
        }
    }
}

impl InKernel for VlanEncap {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let kind = self.tagging.args.ethertype.unwrap_or(ethertype::VLAN);
        let (native, short) = (code.label(), code.label());
        let tci = self.tagging.lower(code, native);
        code.need(EtherHeader::LEN as u32, short);
        code.unstrip(vlan::TAG as u32);
        for at in [0, 4, 8] {
            let part = code.load(at + vlan::TAG as i32, Size::Word);
            code.store(at, Size::Word, part);
        }
        code.store(12, Size::Half, u32::from(kind.to_be()));
        code.store(14, Size::Half, tci);
        code.mark_mac(0);
        code.next(0);
        code.bind(native);
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

    fn frame(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i as u8).wrapping_mul(7)).collect()
    }

    #[test]
    fn every_length() {
        let mut kit = Kit::<VlanEncap>::new("0xA007").unwrap();
        for len in 0..60 {
            let data = frame(len);
            let mut p = packet(&data);
            p.set_network_header(len.min(14), 0);
            let out = kit.act([p]);
            if len < 14 {
                assert!(out.is_empty(), "{len}");
                continue;
            }
            let p = &out[0].1;
            let (link, rest) = etherparse::Ethernet2Header::from_slice(p.data()).unwrap();
            let (tag, rest) = etherparse::SingleVlanHeader::from_slice(rest).unwrap();
            assert_eq!((&link.destination[..], &link.source[..]), (&data[..6], &data[6..12]));
            assert_eq!((link.ether_type.0, tag.vlan_id.value(), tag.pcp.value()), (0x8100, 7, 5));
            assert_eq!((tag.ether_type.0.to_be_bytes(), rest), ([data[12], data[13]], &data[14..]));
            assert_eq!((p.mac_offset(), p.network_offset()), (Some(0), Some(18)));
        }
        assert_eq!(kit.dropped(Reason::TooShort), 14);
    }

    #[test]
    fn native_annotation_and_no_headroom() {
        // Columns: configuration, annotation, and the tag, if there is one.
        for (config, anno, want) in [
            ("ANNO", 0x0005u16, Some(0x0005u16)),
            ("ANNO", 0x2000, None),
            ("ANNO, NATIVE_VLAN -1", 0x2000, Some(0x2000)),
            ("ANNO, NATIVE_VLAN 5", 0xe005, None),
            ("ANNO, 3", 0xe005, Some(0x6005)),
            ("VLAN_ID 9, VLAN_PCP 1", 5, Some(0x2009)),
            ("", 5, None),
            ("0x3000, NATIVE_VLAN 1", 5, Some(0x3000)),
        ] {
            let mut kit = Kit::<VlanEncap>::new(config).unwrap();
            let mut p = Packet::copy_with_headroom(1, &frame(20)).unwrap();
            vlan::annotate(&mut p, anno);
            let out = kit.act([p]);
            let data = out[0].1.data();
            assert_eq!(vlan::tag(data, 0x8100), Ok(want), "{config}");
            assert_eq!(data.len(), 20 + 4 * usize::from(want.is_some()));
        }
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<VlanEncap>::new("7, ETHERTYPE 0x88a8").unwrap();
        kit.write("vlan_id", "9").unwrap();
        kit.write("vlan_pcp", "1").unwrap();
        assert_eq!(vlan::tag(kit.act([packet(&frame(20))])[0].1.data(), 0x88a8), Ok(Some(0x2009)));
        kit.write("native_vlan", "9").unwrap();
        assert_eq!(kit.act([packet(&frame(20))])[0].1.data(), frame(20));
        kit.write("ethertype", "0x8100").unwrap();
        let read = ["vlan_tci", "vlan_id", "vlan_pcp", "native_vlan", "ethertype"];
        assert_eq!(read.map(|h| kit.read(h).unwrap()), ["8201", "9", "1", "9", "33024"]);
        assert_eq!(kit.read("config").unwrap(), "VLAN_ID 9, VLAN_PCP 1, NATIVE_VLAN 9, ETHERTYPE 33024");
        for (config, values, shown) in [
            ("5", ["5", "5", "0", "", ""], "VLAN_ID 5, VLAN_PCP 0"),
            ("ANNO", ["ANNO", "ANNO", "ANNO", "", ""], "VLAN_TCI ANNO"),
            ("ANNO, 3", ["ANNO", "ANNO", "3", "", ""], "VLAN_TCI ANNO, VLAN_PCP 3"),
            ("0x1005", ["4101", "5", "0", "", ""], "VLAN_TCI 4101"),
            ("", [""; 5], "VLAN_ID 0, VLAN_PCP 0"),
        ] {
            let mut kit = Kit::<VlanEncap>::new(config).unwrap();
            assert_eq!(read.map(|h| kit.read(h).unwrap()), values, "{config}");
            assert_eq!(kit.read("config").unwrap(), shown);
            assert!(Kit::<VlanEncap>::new(shown).is_ok());
        }
        for (config, error) in [
            ("65536", "VLAN_TCI: out of range, bound 65535"),
            ("1, 8", "VLAN_PCP: out of range, bound 7"),
            ("VLAN_ID 4096", "VLAN_ID: out of range, bound 4095"),
            ("NATIVE_VLAN -2", "NATIVE_VLAN: out of range, bound -1"),
            ("1, VLAN_ID 3", "VLAN_ID: VLAN_TCI has an identifier already"),
        ] {
            assert_eq!(Kit::<VlanEncap>::new(config).err().unwrap(), [error], "{config}");
        }
    }
}
