// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classes for 802.1Q tags have in common: their arguments, and functions that put a tag into a frame or read
//! it.

use castanet_element::kernel::{Arithmetic, Code, Label, Size, Test, Value};
use castanet_element::prelude::*;
use castanet_spec::{ValueKind, anno};
use castanet_wire::ether::EtherHeader;

/// The bits of a tag that hold the VLAN identifier.
pub const ID: u16 = 0x0fff;
/// The bits of a tag that hold the priority.
const PRIORITY: u16 = 0xe000;
/// The length of a tag in bytes, including the two bytes of its type.
pub const TAG: usize = 4;

/// Parses a number from `low` to `high`.
fn between(text: &str, cx: &ArgCx<'_>, low: i32, high: i32) -> Result<i32, ValueError> {
    let n = i32::parse(text, cx)?;
    if (low..=high).contains(&n) { Ok(n) } else { Err(ValueError::out_of_range(n, low, high)) }
}

/// A VLAN identifier, 0 to 4095.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanId(pub u16);

impl ArgValue for VlanId {
    const TYPE: &'static str = "VLAN identifier";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        Ok(VlanId(between(text, cx, 0, 0xfff)? as u16))
    }
}

/// The VLAN whose frames have no tag, 0 by default; -1 if there is no such VLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Native(pub i32);

impl ArgValue for Native {
    const TYPE: &'static str = "VLAN identifier or -1";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        Ok(Native(between(text, cx, -1, 0xfff)?))
    }
}

impl Show for Native {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A priority, 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(pub u8);

impl ArgValue for Priority {
    const TYPE: &'static str = "priority";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        Ok(Priority(between(text, cx, 0, 7)? as u8))
    }
}

/// A tag in an argument: a number, or ANNO for the VLAN annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tci {
    /// The tag is in the packet's VLAN annotation.
    Anno,
    /// The tag is this number.
    Value(u16),
}

impl ArgValue for Tci {
    const TYPE: &'static str = "uint16 or ANNO";
    const WORD: bool = true;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Tci, ValueError> {
        if text.eq_ignore_ascii_case("ANNO") {
            return Ok(Tci::Anno);
        }
        u16::parse(text, cx).map(Tci::Value)
    }
}

impl Show for Tci {
    fn show(&self) -> String {
        match self {
            Tci::Anno => "ANNO".into(),
            Tci::Value(v) => v.to_string(),
        }
    }
}

/// How the tag of a packet is made: the bits in `mask` come from the annotation, the other bits are those of `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    mask: u16,
    bits: u16,
}

impl Tag {
    /// Makes a tag from arguments. If a priority is given, it replaces that of `tci`. Returns an error if both `tci`
    /// and `id` are given.
    pub fn new(tci: Option<Tci>, id: Option<VlanId>, priority: Option<Priority>) -> Result<Tag, ValueError> {
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
    /// Fixes the bits in `which` to their values in `bits`.
    fn set(&mut self, which: u16, bits: u16) {
        self.mask &= !which;
        self.bits = self.bits & !which | bits;
    }
    /// Returns the tag of a packet in host byte order.
    #[inline(always)]
    pub fn of(self, p: &Packet) -> u16 {
        annotation(p) & self.mask | self.bits
    }
    /// Returns the value of the bits in `which` if all of them are fixed. If not, returns [`Tci::Anno`].
    fn part(self, which: u16) -> Tci {
        match self.mask & which {
            0 => Tci::Value((self.bits & which) >> which.trailing_zeros()),
            _ => Tci::Anno,
        }
    }
    /// Returns the whole tag.
    pub fn tci(self) -> Tci {
        self.part(!0)
    }
    /// Returns the VLAN identifier.
    pub fn id(self) -> Tci {
        self.part(ID)
    }
    /// Returns the priority.
    pub fn priority(self) -> Tci {
        self.part(PRIORITY)
    }
    /// Returns the arguments that give this tag, as a part of a configuration string.
    pub fn arguments(self) -> String {
        match (self.id(), self.priority()) {
            (Tci::Anno, Tci::Anno) => "VLAN_TCI ANNO".into(),
            (Tci::Anno, priority) => format!("VLAN_TCI ANNO, VLAN_PCP {}", priority.show()),
            // Only VLAN_TCI can set the drop eligible bit.
            _ if self.bits & !(ID | PRIORITY) != 0 => format!("VLAN_TCI {}", self.bits),
            (id, priority) => format!("VLAN_ID {}, VLAN_PCP {}", id.show(), priority.show()),
        }
    }
    /// Replaces the whole tag.
    pub fn set_tci(&mut self, tci: Tci) {
        match tci {
            Tci::Anno => *self = Tag { mask: !0, bits: 0 },
            Tci::Value(bits) => self.set(!0, bits),
        }
    }
    /// Fixes the VLAN identifier.
    pub fn set_id(&mut self, id: VlanId) {
        self.set(ID, id.0);
    }
    /// Fixes the priority.
    pub fn set_priority(&mut self, priority: Priority) {
        self.set(PRIORITY, u16::from(priority.0) << 13);
    }
}

/// The arguments that set the tag of packets.
#[derive(Args)]
pub struct TagArgs {
    /// The whole tag (16 bits), or ANNO for the tag in the VLAN annotation.
    vlan_tci: Option<Tci>,
    /// The priority, 0 to 7.
    #[arg(show = "0")]
    vlan_pcp: Option<Priority>,
    /// The VLAN identifier, 0 to 4095.
    #[arg(keyword, show = "0")]
    vlan_id: Option<VlanId>,
    /// The VLAN whose frames get no tag; -1 for none.
    #[arg(keyword, show = "0", handler = "rw")]
    native_vlan: Option<Native>,
}

/// The arguments of a class that puts tags into frames.
pub trait Tagged: castanet_spec::Args {
    /// Returns the arguments that set the tag of packets.
    fn tag(&self) -> &TagArgs;
}

/// The engine of the classes that put tags into frames.
#[derive(Counts)]
pub struct Tagging<A> {
    /// The arguments of the class.
    pub args: A,
    /// How the tags of packets are made.
    pub tag: Tag,
    /// Whether an argument or a handler has set the tag. If not, the handlers that read the tag return an empty string.
    given: bool,
}

impl<A: Tagged> Tagging<A> {
    /// Whether a tag belongs to the native VLAN, whose frames get no tag.
    #[inline(always)]
    pub fn is_native(&self, tci: u16) -> bool {
        i32::from(tci & ID) == self.args.tag().native_vlan.unwrap_or_default().0
    }
    /// Returns the arguments that give this tag, and the native VLAN if one was given.
    pub fn arguments(&self) -> String {
        let native = self.args.tag().native_vlan.map(|n| format!(", NATIVE_VLAN {}", n.0));
        self.tag.arguments() + &native.unwrap_or_default()
    }
    /// Returns a part of the tag. `None` if neither an argument nor a handler has set the tag.
    fn shown(&self, part: fn(Tag) -> Tci) -> Option<Tci> {
        self.given.then(|| part(self.tag))
    }
    fn change(&mut self, change: impl FnOnce(&mut Tag)) {
        self.given = true;
        change(&mut self.tag);
    }
}

impl<A: Tagged> Tagging<A> {
    /// Describes [`Tag::of`] and [`Tagging::is_native`]: continues at a label if the tag belongs to the native VLAN, otherwise
    /// returns the tag in network order.
    pub fn lower(&self, code: &mut Code<'_>, native: Label) -> Value {
        let Tag { mask, bits } = self.tag;
        let known = code.known_annotation(anno::VLAN_TCI).map(u16::from_be_bytes);
        if let Some(known) = known.or((mask == 0).then_some(0)) {
            let tci = known & mask | bits;
            if self.is_native(tci) {
                code.jump(native);
            }
            return code.constant(tci.to_be().into());
        }
        let tci = code.annotation(anno::VLAN_TCI, Size::Half);
        let tci = code.compute(Arithmetic::And, tci, u32::from(mask.to_be()));
        let tci = code.compute(Arithmetic::Or, tci, u32::from(bits.to_be()));
        if let Ok(number) = u16::try_from(self.args.tag().native_vlan.unwrap_or_default().0) {
            let id = code.compute(Arithmetic::And, tci, u32::from(ID.to_be()));
            code.branch(id, Test::Equal, u32::from(number.to_be()), native);
        }
        tci
    }
}

#[handlers]
impl<A: Tagged> Tagging<A> {
    /// The whole tag, or ANNO; empty until a tag is set.
    #[read(merge = first)]
    fn vlan_tci(&self) -> Option<Tci> {
        self.shown(Tag::tci)
    }
    #[write]
    fn set_vlan_tci(&mut self, tci: Tci) {
        self.change(|tag| tag.set_tci(tci));
    }
    /// The VLAN identifier, or ANNO; empty until a tag is set.
    #[read(merge = first)]
    fn vlan_id(&self) -> Option<Tci> {
        self.shown(Tag::id)
    }
    #[write]
    fn set_vlan_id(&mut self, id: VlanId) {
        self.change(|tag| tag.set_id(id));
    }
    /// The priority, or ANNO; empty until a tag is set.
    #[read(merge = first)]
    fn vlan_pcp(&self) -> Option<Tci> {
        self.shown(Tag::priority)
    }
    #[write]
    fn set_vlan_pcp(&mut self, priority: Priority) {
        self.change(|tag| tag.set_priority(priority));
    }
}

impl<A> Lifecycle for Tagging<A> {}

impl<A: Tagged> Engine for Tagging<A> {
    type Args = A;
    fn build(args: A, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let &TagArgs { vlan_tci, vlan_pcp, vlan_id, .. } = args.tag();
        let given = vlan_tci.is_some() || vlan_pcp.is_some() || vlan_id.is_some();
        Ok(Tagging { tag: Tag::new(vlan_tci, vlan_id, vlan_pcp)?, given, args })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

/// Returns the tag in a packet's VLAN annotation, in host byte order.
#[inline(always)]
pub fn annotation(p: &Packet) -> u16 {
    u16::from_be_bytes(p.anno(anno::VLAN_TCI))
}

/// Sets the VLAN annotation of a packet to a tag in host byte order.
#[inline(always)]
pub fn annotate(p: &mut Packet, tci: u16) {
    p.set_anno(anno::VLAN_TCI, tci.to_be_bytes());
}

/// Puts a tag after the two addresses of a frame, and marks the MAC header.
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

/// Describes [`tag`]: continues at one of the labels if the frame has no tag, or a truncated one. Returns the tag in network order.
pub fn lower_tag(code: &mut Code<'_>, kind: u16, untagged: Label, truncated: Label) -> Value {
    code.need(EtherHeader::LEN as u32, untagged);
    let found = code.load(12, Size::Half);
    code.branch(found, Test::Differ, u32::from(kind.to_be()), untagged);
    code.need((EtherHeader::LEN + TAG) as u32, truncated);
    code.load(14, Size::Half)
}

/// Returns the tag of a frame in host byte order, or none if the frame has no tag of type `kind`. A truncated tag is an
/// error.
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
            assert_eq!([tag.tci(), tag.id(), tag.priority()].map(|t| t.show()), shown);
        }
        assert!(Tag::new(Some(Tci::Anno), Some(VlanId(1)), None).is_err());
    }

    #[test]
    fn changes_fix_their_bits() {
        let mut tag = Tag::new(Some(Tci::Value(0xffff)), None, None).unwrap();
        tag.set_id(VlanId(1));
        tag.set_priority(Priority(2));
        assert_eq!(tag.of(&packet(b"")), 0x5001, "the drop eligible bit stays");
        tag.set_tci(Tci::Anno);
        let mut p = packet(b"");
        annotate(&mut p, 77);
        assert_eq!(tag.of(&p), 77);
    }

    #[test]
    fn limits() {
        let names = Names::new();
        let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
        assert_eq!(
            (VlanId::parse("4095", &cx), Native::parse("-1", &cx)),
            (Ok(VlanId(4095)), Ok(Native(-1)))
        );
        assert_eq!((Priority::parse("7", &cx), Tci::parse("anno", &cx)), (Ok(Priority(7)), Ok(Tci::Anno)));
        for bad in ["4096", "-1"] {
            assert!(VlanId::parse(bad, &cx).is_err() && Priority::parse(bad, &cx).is_err(), "{bad}");
        }
        assert!(Priority::parse("8", &cx).is_err() && Native::parse("-2", &cx).is_err());
        assert!(Tci::parse("65536", &cx).is_err());
    }
}
