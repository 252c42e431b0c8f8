// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetVLANAnno: sets the VLAN annotation.

use super::vlan::{self, Priority, Tag, Tci, VlanId};
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Sets the VLAN annotation of packets.
///
/// The annotation is set to VLAN_TCI, or to a tag made of VLAN_ID and VLAN_PCP. Classes such as VLANEncap and
/// ARPQuerier read the annotation.
///
/// # Ports
/// Input 0: packets. Output 0: the packets with the annotation.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
///     -> SetVLANAnno(VLAN_ID 7, VLAN_PCP 5) -> VLANEncap(ANNO) -> Print(tagged) -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "SetVLANAnno",
    aliases("SetVlanAnno"),
    ports = "1/1",
    processing = "a/a",
    packets = "any/same"
)]
#[class(workers = replicate, build, handlers)]
#[class(reconfigure = keeps, depends = packet)]
#[class(kernel)]
pub struct SetVlanAnno {
    args: Args,
    tag: Tag,
}

/// Arguments of SetVLANAnno.
#[derive(Args)]
pub struct Args {
    /// The whole tag (16 bits): priority, drop eligible bit and VLAN identifier.
    vlan_tci: Option<u16>,
    /// The priority, 0 to 7.
    #[arg(show = "0")]
    vlan_pcp: Option<Priority>,
    /// The VLAN identifier, 0 to 4095.
    #[arg(keyword, show = "0")]
    vlan_id: Option<VlanId>,
}

impl Build for SetVlanAnno {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let tag = Tag::new(args.vlan_tci.map(Tci::Value), args.vlan_id, args.vlan_pcp)?;
        Ok(SetVlanAnno { args, tag })
    }
}

#[handlers]
impl SetVlanAnno {
    /// The whole tag, as a 16-bit number.
    #[read(merge = first)]
    fn vlan_tci(&self) -> Tci {
        self.tag.tci()
    }
    #[write]
    fn set_vlan_tci(&mut self, tci: u16) {
        self.tag.set_tci(Tci::Value(tci));
    }
    /// The VLAN identifier.
    #[read(merge = first)]
    fn vlan_id(&self) -> Tci {
        self.tag.id()
    }
    #[write]
    fn set_vlan_id(&mut self, id: VlanId) {
        self.tag.set_id(id);
    }
    /// The priority.
    #[read(merge = first)]
    fn vlan_pcp(&self) -> Tci {
        self.tag.priority()
    }
    #[write]
    fn set_vlan_pcp(&mut self, priority: Priority) {
        self.tag.set_priority(priority);
    }
    /// The arguments VLAN_ID and VLAN_PCP that give the current tag.
    #[read(merge = first)]
    fn config(&self) -> String {
        format!("VLAN_ID {}, VLAN_PCP {}", self.tag.id().show(), self.tag.priority().show())
    }
}

impl Action for SetVlanAnno {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        vlan::annotate(p, self.tag.of(p));
        Verdict::Next
    }
}

impl InKernel for SetVlanAnno {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        match self.tag.tci() {
            Tci::Value(tci) => code.set_known_annotation(anno::VLAN_TCI, tci.to_be_bytes()),
            // The annotation stays.
            Tci::Anno => {}
        }
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
    fn annotates() {
        for (config, want) in [
            ("", 0),
            ("0xffff", 0xffff),
            ("7, 5", 0xa007),
            ("VLAN_ID 4095, VLAN_PCP 7", 0xefff),
            ("VLAN_PCP 1", 0x2000),
        ] {
            let mut kit = Kit::<SetVlanAnno>::new(config).unwrap();
            for n in [1, 2, 3, 32] {
                let out = kit.act((0..n).map(|_| packet(b"")));
                assert!(out.len() == n && out.iter().all(|(_, p)| vlan::annotation(p) == want), "{config}");
            }
        }
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<SetVlanAnno>::new("0x1fff").unwrap();
        kit.write("vlan_id", "1").unwrap();
        kit.write("vlan_pcp", "6").unwrap();
        assert_eq!(vlan::annotation(&kit.act1(packet(b"")).1), 0xd001);
        kit.write("vlan_tci", "513").unwrap();
        assert_eq!(["vlan_tci", "vlan_id", "vlan_pcp"].map(|h| kit.read(h).unwrap()), ["513", "513", "0"]);
        for bad in [("vlan_tci", "ANNO"), ("vlan_id", "4096"), ("vlan_pcp", "-1")] {
            assert!(kit.write(bad.0, bad.1).is_err());
        }
        for config in ["65536", "-2", "1, 8", "VLAN_ID 4096", "1, VLAN_ID 1", "ANNO"] {
            assert!(Kit::<SetVlanAnno>::new(config).is_err(), "{config}");
        }
    }
}
