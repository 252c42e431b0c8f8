// SPDX-License-Identifier: MIT OR Apache-2.0
//! VLANDecap: removes 802.1Q tags from frames.

use super::vlan;
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;
use castanet_element::spec::anno;
use castanet_wire::ether::ethertype;

/// Removes the IEEE 802.1Q tag from Ethernet frames.
///
/// Unless ANNO is false, the VLAN annotation is set to the tag, or to 0 for a frame without a tag. Frames without a tag
/// pass unchanged. Frames that end within their tag are dropped.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: frames without a tag.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<020000000002 020000000001 8100 a007 0800 45000014>, LIMIT 2, STOP true)
///     -> VLANDecap -> Print(plain) -> VLANEncap(ANNO) -> Print(tagged) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "VLANDecap", ports = "1/1", processing = "a/a", packets = "ether/framed", workers = replicate)]
#[class(drops(TooShort), depends = packet)]
#[class(kernel)]
pub struct VlanDecap {
    args: Args,
}

/// Arguments of VLANDecap.
#[derive(Args)]
pub struct Args {
    /// Whether to set the VLAN annotation.
    #[arg(default = true)]
    anno: bool,
    /// The EtherType of the tags.
    #[arg(keyword, default = ethertype::VLAN, show = "0x8100")]
    ethertype: u16,
}

impl Action for VlanDecap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let tag = match vlan::tag(p.data(), self.args.ethertype) {
            Ok(tag) => tag,
            Err(reason) => return Verdict::Drop(reason),
        };
        if self.args.anno {
            vlan::annotate(p, tag.unwrap_or(0));
        }
        if tag.is_some() {
            if let Some(h) = p.data_mut().first_chunk_mut::<16>() {
                h.copy_within(0..12, vlan::TAG);
            }
            p.strip(vlan::TAG);
            p.set_mac_header(0);
        }
        Verdict::Next
    }
}

impl InKernel for VlanDecap {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let (untagged, short) = (code.label(), code.label());
        let tci = vlan::lower_tag(code, self.args.ethertype, untagged, short);
        if self.args.anno {
            code.set_annotation(anno::VLAN_TCI, Size::Half, tci);
        }
        for at in [8, 4, 0] {
            let part = code.load(at, Size::Word);
            code.store(at + vlan::TAG as i32, Size::Word, part);
        }
        code.strip(vlan::TAG as u32);
        code.mark_mac(0);
        code.next(0);
        code.bind(untagged);
        if self.args.anno {
            code.set_known_annotation(anno::VLAN_TCI, [0, 0]);
        }
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

    const TAGGED: [u8; 20] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xa0, 7, 8, 0, 0x45, 9];
    const PLAIN: [u8; 16] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 9];

    #[test]
    fn every_length() {
        let mut kit = Kit::<VlanDecap>::new("").unwrap();
        for len in 0..=20 {
            let mut p = packet(&TAGGED[..len]);
            vlan::annotate(&mut p, 99);
            let out = kit.act([p]);
            match len {
                0..14 => assert_eq!((out[0].1.data(), vlan::annotation(&out[0].1)), (&TAGGED[..len], 0)),
                14..18 => assert!(out.is_empty()),
                _ => {
                    assert_eq!((out[0].1.data(), vlan::annotation(&out[0].1)), (&PLAIN[..len - 4], 0xa007));
                    assert_eq!(out[0].1.mac_offset(), Some(0));
                }
            }
        }
        assert_eq!((kit.dropped(Reason::TooShort), kit.all_dropped()), (4, 4));
    }

    #[test]
    fn untagged_and_other_tags() {
        // The columns of the table are configuration, frame before, frame after, and annotation after.
        let mut other = TAGGED;
        (other[12], other[13]) = (0x88, 0xa8);
        for (config, frame, want, anno) in [
            ("", &PLAIN[..], &PLAIN[..], 0),
            ("ANNO false", &PLAIN[..], &PLAIN[..], 99),
            ("false", &TAGGED[..], &PLAIN[..], 99),
            ("", &other[..], &other[..], 0),
            ("ETHERTYPE 0x88a8", &other[..], &PLAIN[..], 0xa007),
        ] {
            let mut kit = Kit::<VlanDecap>::new(config).unwrap();
            for n in [1, 2, 3, 32] {
                let made = (0..n).map(|_| {
                    let mut p = packet(frame);
                    vlan::annotate(&mut p, 99);
                    p
                });
                let out = kit.act(made);
                assert_eq!(out.len(), n);
                assert!(out.iter().all(|(_, p)| p.data() == want && vlan::annotation(p) == anno), "{config}");
            }
        }
    }

    #[test]
    fn undoes_vlan_encap() {
        use crate::ether::vlan_encap::VlanEncap;
        let mut encap = Kit::<VlanEncap>::new("0xE123").unwrap();
        let mut decap = Kit::<VlanDecap>::new("").unwrap();
        let mut p = packet(&PLAIN);
        // The clone must not see the changes.
        let twin = p.share().unwrap();
        let there = encap.act([p]).pop().unwrap().1;
        let back = decap.act([there]).pop().unwrap().1;
        assert_eq!((back.data(), twin.data()), (&PLAIN[..], &PLAIN[..]));
        assert_eq!(vlan::annotation(&back), 0xe123);
    }
}
