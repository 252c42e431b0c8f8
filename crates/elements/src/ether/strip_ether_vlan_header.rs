// SPDX-License-Identifier: MIT OR Apache-2.0
//! StripEtherVLANHeader: strips Ethernet headers, tagged or not.

use super::vlan::{self, Native};
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;
use castanet_element::spec::anno;
use castanet_wire::ether::{EtherHeader, ethertype};

/// Strips Ethernet headers, including their IEEE 802.1Q tag if there is one.
///
/// The VLAN annotation is set to the tag, or to NATIVE_VLAN for a frame without a tag. Frames that end within their
/// header leave unchanged on output 1, or are dropped if output 1 is not connected. If NATIVE_VLAN is -1, frames
/// without a tag are treated in the same way. The MAC header is marked.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: the payload of the frames. Output 1 (optional): truncated frames, and frames
/// without a tag if NATIVE_VLAN is -1.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<020000000002 020000000001 8100 a007 0800 45000014>, LIMIT 2, STOP true)
///     -> StripEtherVLANHeader -> Print(inside) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StripEtherVLANHeader", aliases("StripEtherVlanHeader"), ports = "1/1-2", processing = "a/ah")]
#[class(reconfigure = keeps, packets = "ether/strip 14, same", workers = replicate, drops(TooShort, Untagged))]
#[class(depends = packet)]
#[class(kernel)]
pub struct StripEtherVlanHeader {
    args: Args,
}

/// Arguments of StripEtherVLANHeader.
#[derive(Args)]
pub struct Args {
    /// The VLAN of frames without a tag; -1 to refuse such frames.
    #[arg(default = Native(0), show = "0")]
    native_vlan: Native,
}

impl Action for StripEtherVlanHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let (tci, header) = match vlan::tag(p.data(), ethertype::VLAN) {
            Ok(Some(tci)) => (tci, EtherHeader::LEN + vlan::TAG),
            Ok(None) if p.len() >= EtherHeader::LEN => match u16::try_from(self.args.native_vlan.0) {
                Ok(native) => (native, EtherHeader::LEN),
                Err(_) => return cx.out_or(1, Reason::Untagged),
            },
            Ok(None) | Err(_) => return cx.out_or(1, Reason::TooShort),
        };
        vlan::annotate(p, tci);
        p.set_mac_header(0);
        p.strip(header);
        Verdict::Next
    }
}

impl InKernel for StripEtherVlanHeader {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let (untagged, short) = (code.label(), code.label());
        let tci = vlan::lower_tag(code, ethertype::VLAN, untagged, short);
        code.set_annotation(anno::VLAN_TCI, Size::Half, tci);
        code.mark_mac(0);
        code.strip((EtherHeader::LEN + vlan::TAG) as u32);
        code.next(0);
        code.bind(untagged);
        code.need(EtherHeader::LEN as u32, short);
        match u16::try_from(self.args.native_vlan.0) {
            Ok(native) => {
                code.set_known_annotation(anno::VLAN_TCI, native.to_be_bytes());
                code.mark_mac(0);
                code.strip(EtherHeader::LEN as u32);
                code.next(0);
            }
            Err(_) => code.next_or(1, Reason::Untagged as u16),
        }
        code.bind(short);
        code.next_or(1, Reason::TooShort as u16);
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
        // Columns: frame, configuration, shortest length that is accepted, annotation.
        for (frame, config, least, tci) in [
            (&TAGGED[..], "", 18, 0xa007),
            (&TAGGED[..], "-1", 18, 0xa007),
            (&PLAIN[..], "", 14, 0),
            (&PLAIN[..], "77", 14, 77),
            (&PLAIN[..], "-1", 99, 0),
        ] {
            let mut two = Kit::<StripEtherVlanHeader>::with_ports(config, 1, 2).unwrap();
            let mut one = Kit::<StripEtherVlanHeader>::new(config).unwrap();
            for len in 0..=frame.len() {
                let out = two.act([packet(&frame[..len])]);
                let (port, p) = &out[0];
                if len < least {
                    assert_eq!((*port, p.data()), (1, &frame[..len]), "{config} {len}");
                } else {
                    assert_eq!((*port, p.data(), vlan::annotation(p)), (0, &frame[least..len], tci));
                    assert_eq!(p.mac_offset(), Some(-(least as isize)));
                }
                assert_eq!(one.act([packet(&frame[..len])]).len(), usize::from(len >= least));
            }
            assert_eq!(one.all_dropped(), least.min(frame.len() + 1) as u64);
        }
    }

    #[test]
    fn argument_errors() {
        assert!(Kit::<StripEtherVlanHeader>::new("4096").is_err());
        assert!(Kit::<StripEtherVlanHeader>::new("-2").is_err());
    }
}
