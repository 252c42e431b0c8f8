// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classes for 802.1Q tags have in common: their arguments, and the tag put into a frame.

use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::ether::EtherHeader;

/// The bits of a tag that hold the VLAN identifier.
pub const ID: u16 = 0x0fff;
/// The bits of a tag that hold the priority.
const PRIORITY: u16 = 0xe000;
/// Bytes of a tag, its type included.
pub const TAG: usize = 4;

/// Reads a number between limits.
fn between(text: &str, cx: &ArgCx<'_>, low: i32, high: i32) -> Result<i32, String> {
    let n = i32::parse(text, cx)?;
    if (low..=high).contains(&n) {
        Ok(n)
    } else {
        Err(format!("out of range, the limits are {low} and {high}"))
    }
}

macro_rules! bounded {
    ($(#[doc = $doc:literal] $name:ident($t:ty) $type:literal $low:literal $high:literal;)+) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $t);
        impl ArgValue for $name {
            const TYPE: &'static str = $type;
            fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, String> {
                Ok($name(between(text, cx, $low, $high)? as $t))
            }
        }
        impl Show for $name {
            fn show(&self) -> String {
                self.0.to_string()
            }
        }
    )+ };
}
bounded! {
    /// A VLAN identifier.
    VlanId(u16) "VLAN identifier" 0 0xfff;
    /// The VLAN whose frames have no tag; -1 for none.
    Native(i32) "VLAN identifier or -1" -1 0xfff;
    /// A priority.
    Priority(u8) "priority" 0 7;
}

/// A tag as an argument: a number, or what the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tci {
    /// The annotation.
    Anno,
    /// A number.
    Value(u16),
}

impl ArgValue for Tci {
    const TYPE: &'static str = "uint16 or ANNO";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Tci, String> {
        if text.eq_ignore_ascii_case("ANNO") {
            return Ok(Tci::Anno);
        }
        u16::parse(text, cx).map(Tci::Value)
    }
}

/// How the tag of a packet is made: some of its bits are the annotation's, the others are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    mask: u16,
    bits: u16,
}

impl Tag {
    /// From arguments. A priority or an identifier that is given takes the place of the tag's.
    pub fn new(tci: Option<Tci>, id: Option<VlanId>, priority: Option<Priority>) -> Result<Tag, String> {
        if tci.is_some() && id.is_some() {
            return Err("VLAN_ID: VLAN_TCI has an identifier already".into());
        }
        let mut tag = match tci {
            Some(Tci::Anno) => Tag { mask: !0, bits: 0 },
            Some(Tci::Value(bits)) => Tag { mask: 0, bits },
            None => Tag { mask: 0, bits: id.map_or(0, |i| i.0) },
        };
        if let Some(p) = priority {
            tag.set(PRIORITY, u16::from(p.0) << 13);
        }
        Ok(tag)
    }
    /// Fixes some bits.
    fn set(&mut self, which: u16, bits: u16) {
        self.mask &= !which;
        self.bits = self.bits & !which | bits;
    }
    /// The tag of a packet, in host order.
    #[inline(always)]
    pub fn of(self, p: &Packet) -> u16 {
        annotation(p) & self.mask | self.bits
    }
    /// What a handler shows.
    pub fn read(self, handler: &str) -> Option<String> {
        let (which, shift) = match handler {
            "vlan_tci" => (!0, 0),
            "vlan_id" => (ID, 0),
            "vlan_pcp" => (PRIORITY, 13),
            _ => return None,
        };
        let fixed = self.mask & which == 0;
        Some(if fixed { ((self.bits & which) >> shift).to_string() } else { "ANNO".into() })
    }
    /// Changes what a handler shows.
    pub fn write(&mut self, handler: &str, text: &str, cx: &ArgCx<'_>) -> Result<(), String> {
        match handler {
            "vlan_tci" => match Tci::parse(text, cx)? {
                Tci::Anno => *self = Tag { mask: !0, bits: 0 },
                Tci::Value(bits) => self.set(!0, bits),
            },
            "vlan_id" => self.set(ID, VlanId::parse(text, cx)?.0),
            "vlan_pcp" => self.set(PRIORITY, u16::from(Priority::parse(text, cx)?.0) << 13),
            _ => return Err(format!("no '{handler}' write handler")),
        }
        Ok(())
    }
}

/// The tag that a packet is annotated with, in host order.
#[inline(always)]
pub fn annotation(p: &Packet) -> u16 {
    u16::from_be_bytes(p.anno(anno::VLAN_TCI))
}

/// Annotates a packet with a tag in host order.
#[inline(always)]
pub fn annotate(p: &mut Packet, tci: u16) {
    p.set_anno(anno::VLAN_TCI, tci.to_be_bytes());
}

/// Puts a tag behind the addresses of a frame and marks the MAC header.
#[inline]
pub fn put(p: &mut Packet, kind: u16, tci: u16) -> Result<(), Reason> {
    if p.len() < EtherHeader::LEN {
        return Err(Reason::TooShort);
    }
    if !p.unstrip(TAG) {
        return Err(Reason::TooLong);
    }
    let [k0, k1] = kind.to_be_bytes();
    let [t0, t1] = tci.to_be_bytes();
    if let Some(h) = p.data_mut().first_chunk_mut::<16>() {
        h.copy_within(4..16, 0);
        [h[12], h[13], h[14], h[15]] = [k0, k1, t0, t1];
    }
    p.set_mac_header(0);
    Ok(())
}

/// The tag of a frame, in host order, if it has one of that type; an error if it is cut off.
#[inline]
pub fn tag(frame: &[u8], kind: u16) -> Result<Option<u16>, Reason> {
    let Some(h) = frame.first_chunk::<14>() else { return Ok(None) };
    if u16::from_be_bytes([h[12], h[13]]) != kind {
        return Ok(None);
    }
    match frame.first_chunk::<18>() {
        Some(h) => Ok(Some(u16::from_be_bytes([h[14], h[15]]))),
        None => Err(Reason::TooShort),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::packet;
    use castanet_element::spec::Names;

    #[test]
    fn tags_from_arguments_and_annotations() {
        let mut p = packet(b"");
        annotate(&mut p, 0xa123);
        assert_eq!(p.anno::<2>(20), [0xa1, 0x23]);
        for (tci, id, priority, want, shown) in [
            (None, None, None, 0, ["0", "0", "0"]),
            (None, Some(VlanId(5)), Some(Priority(7)), 0xe005, ["57349", "5", "7"]),
            (Some(Tci::Value(0x1fff)), None, Some(Priority(1)), 0x3fff, ["16383", "4095", "1"]),
            (Some(Tci::Value(0xf00f)), None, None, 0xf00f, ["61455", "15", "7"]),
            (Some(Tci::Anno), None, None, 0xa123, ["ANNO", "ANNO", "ANNO"]),
            (Some(Tci::Anno), None, Some(Priority(0)), 0x0123, ["ANNO", "ANNO", "0"]),
        ] {
            let tag = Tag::new(tci, id, priority).unwrap();
            assert_eq!(tag.of(&p), want, "{tci:?} {id:?} {priority:?}");
            assert_eq!(["vlan_tci", "vlan_id", "vlan_pcp"].map(|h| tag.read(h).unwrap()), shown);
        }
        assert!(Tag::new(Some(Tci::Anno), Some(VlanId(1)), None).is_err());
    }

    #[test]
    fn handlers_change_their_bits() {
        let names = Names::new();
        let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
        let mut tag = Tag::new(Some(Tci::Value(0xffff)), None, None).unwrap();
        tag.write("vlan_id", "1", &cx).unwrap();
        tag.write("vlan_pcp", "2", &cx).unwrap();
        assert_eq!(tag.of(&packet(b"")), 0x5001, "the drop eligible bit stays");
        tag.write("vlan_tci", "anno", &cx).unwrap();
        let mut p = packet(b"");
        annotate(&mut p, 77);
        assert_eq!(tag.of(&p), 77);
        for (handler, text) in
            [("vlan_id", "4096"), ("vlan_id", "-1"), ("vlan_pcp", "8"), ("vlan_tci", "65536"), ("x", "1")]
        {
            assert!(tag.write(handler, text, &cx).is_err(), "{handler} {text}");
        }
        assert!(tag.read("x").is_none());
    }
}
