// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of aligned 4-byte words, and boolean expressions of such tests. Offsets are coded: one number gives the header
//! and the offset in it, as [`OffsetBase`](crate::program::OffsetBase) says.

/// The coded offset at which the Ethernet header starts in programs of kind `Ip`. It is 2, so that the header of 14
/// bytes ends at a word boundary and each Ethernet address lies in two words.
pub(crate) const ETHER: u32 = 2;
/// The coded offset at which the IP header starts in programs of kind `Ip`. Lower offsets are in the Ethernet header.
pub(crate) const NETWORK: u32 = 256;
/// The coded offset at which the transport header starts in programs of kind `Ip`.
pub(crate) const TRANSPORT: u32 = 512;
/// The lowest coded offset of each header: the Ethernet header (or the only header, in a program with one header), the
/// IP header, and the transport header.
pub(crate) const BASES: [u32; 3] = [0, NETWORK, TRANSPORT];

/// A test. It is true if the packet has all bytes before `need`, and the word at `offset` equals `value` under `mask`.
/// Words are read in network order. A zero mask tests only the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Atom {
    pub(crate) offset: u32,
    pub(crate) mask: u32,
    pub(crate) value: u32,
    /// The position directly after the last byte that must be present, coded like `offset`.
    pub(crate) need: u32,
}

/// A boolean expression of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(bool),
    Atom(Atom),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    If(Box<[Expr; 3]>),
}

impl Expr {
    pub(crate) fn negate(self) -> Expr {
        match self {
            Expr::Const(b) => Expr::Const(!b),
            Expr::Not(e) => *e,
            e => Expr::Not(Box::new(e)),
        }
    }

    /// The number of tests in the expression.
    pub(crate) fn size(&self) -> usize {
        match self {
            Expr::Const(_) => 0,
            Expr::Atom(_) => 1,
            Expr::Not(e) => e.size(),
            Expr::And(v) | Expr::Or(v) => v.iter().map(Expr::size).sum(),
            Expr::If(v) => v.iter().map(Expr::size).sum(),
        }
    }
}

/// A header field: an unsigned number in consecutive bits of an aligned word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Offset of the aligned word, coded as the head of this file says.
    pub(crate) offset: u32,
    /// Position of the field's lowest bit in the word.
    pub(crate) shift: u32,
    pub(crate) bits: u32,
    /// End of the field's last byte, coded like `offset`.
    pub(crate) need: u32,
}

impl Field {
    /// The field of `len` bytes (1 to 4) that begins at the coded offset `pos`. All its bytes lie within one aligned
    /// word.
    pub(crate) const fn bytes(pos: u32, len: u32) -> Field {
        let end = (pos & 3) + len;
        Field { offset: pos & !3, shift: 32 - end * 8, bits: len * 8, need: pos + len }
    }

    /// `len` bytes (1 to 4) from byte `pos` of the Ethernet header on. The bytes must lie within one word. Words are
    /// aligned to the end of the header if this puts all these bytes into one word, else to the start of the header.
    pub(crate) const fn ether(pos: u32, len: u32) -> Field {
        if Field::ends_aligned(pos, len) {
            return Field::bytes(ETHER + pos, len);
        }
        let f = Field::bytes(pos, len);
        Field { offset: f.offset + ETHER, need: f.need + ETHER, ..f }
    }

    /// Whether the `len` bytes from byte `pos` of the Ethernet header on lie within one word, if words are aligned to
    /// the end of the header.
    pub(crate) const fn ends_aligned(pos: u32, len: u32) -> bool {
        ((ETHER + pos) & 3) + len <= 4
    }

    /// `bits` bits of the byte at coded offset `pos`, starting `low` bits above its lowest.
    pub(crate) const fn part(pos: u32, low: u32, bits: u32) -> Field {
        let byte = Field::bytes(pos, 1);
        Field { offset: byte.offset, shift: byte.shift + low, bits, need: byte.need }
    }

    pub(crate) const fn max(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    pub(crate) fn equals(self, mask: u32, value: u32) -> Atom {
        let mask = mask & self.max();
        Atom {
            offset: self.offset,
            mask: mask << self.shift,
            value: (value & mask) << self.shift,
            need: self.need,
        }
    }

    /// True if the whole field is present.
    pub(crate) fn present(self) -> Atom {
        self.equals(0, 0)
    }

    /// The test `(field & mask) RELATION value`. It is false if the field is missing.
    pub(crate) fn compare(self, mask: u32, relation: Relation, value: u32) -> Expr {
        let mask = mask & self.max();
        let there = |e: Expr| Expr::And(vec![Expr::Atom(self.present()), e]);
        match relation {
            Relation::Equal if value & !mask != 0 => Expr::Const(false),
            Relation::Equal => Expr::Atom(self.equals(mask, value)),
            Relation::NotEqual => there(self.compare(mask, Relation::Equal, value).negate()),
            Relation::GreaterEqual => match value.checked_sub(1) {
                None => Expr::Atom(self.present()),
                Some(v) => self.above(mask, v),
            },
            Relation::Greater => self.above(mask, value),
            Relation::LessEqual => there(self.above(mask, value).negate()),
            Relation::Less => match value.checked_sub(1) {
                None => Expr::Const(false),
                Some(v) => there(self.above(mask, v).negate()),
            },
        }
    }

    /// `(field & mask) > value`, as tests of leading bits. The field is greater if it has a 1 at some bit where the
    /// value has a 0, and all higher bits are equal. If fewer tests suffice for the opposite condition, the result is
    /// the negation of these tests.
    fn above(self, mask: u32, value: u32) -> Expr {
        if value >= mask {
            return Expr::Const(false);
        }
        // INVARIANT: the masked field has bits only in `mask`. So `value` can be replaced by the largest number that is
        // at most `value` and has bits only in `mask`.
        let floor = floor_under_mask(mask, value);
        let zeros = mask & !floor;
        let Some(next) = next_under_mask(mask, floor) else {
            return Expr::Const(false);
        };
        let step = |bit: u32, base: u32, flip: bool| {
            let prefix = mask & !(bit | (bit - 1));
            let wanted = (base & prefix) | if flip { bit } else { 0 };
            Expr::Atom(self.equals(prefix | bit, wanted))
        };
        let bits = |set: u32| (0..32).rev().map(|i| 1u32 << i).filter(move |b| set & b != 0);
        if zeros.count_ones() <= next.count_ones() {
            Expr::Or(bits(zeros).map(|b| step(b, floor, true)).collect())
        } else {
            let below: Vec<_> = bits(next).map(|b| step(b, next, false)).collect();
            Expr::And(vec![Expr::Atom(self.present()), Expr::Or(below).negate()])
        }
    }
}

/// The largest number with bits only in `mask` that is at most `value`, given `value < mask`.
fn floor_under_mask(mask: u32, value: u32) -> u32 {
    // The loop goes from the highest bit down. At the first set bit of `value` outside the mask, the result gets a 0.
    // This makes the result smaller than `value`, so all lower bits of the mask can be set in it.
    let mut floor = 0;
    for i in (0..32).rev() {
        let bit = 1u32 << i;
        match (value & bit != 0, mask & bit != 0) {
            (true, true) => floor |= bit,
            (true, false) => return floor | (mask & (bit - 1)),
            (false, _) => {}
        }
    }
    floor
}

/// The next number after `value` with bits only in `mask`.
fn next_under_mask(mask: u32, value: u32) -> Option<u32> {
    // Ones outside the mask let the carry propagate across the gaps.
    (value | !mask).checked_add(1).map(|n| n & mask)
}

/// A comparison of a field with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(e: &Expr, word: u32) -> bool {
        match e {
            Expr::Const(b) => *b,
            Expr::Atom(a) => word & a.mask == a.value,
            Expr::Not(e) => !eval(e, word),
            Expr::And(v) => v.iter().all(|e| eval(e, word)),
            Expr::Or(v) => v.iter().any(|e| eval(e, word)),
            Expr::If(v) => eval(if eval(&v[0], word) { &v[1] } else { &v[2] }, word),
        }
    }

    /// Checks each combination of a 5-bit field value, mask, relation and bound against plain arithmetic.
    #[test]
    fn relations_are_arithmetic() {
        let field = Field { offset: 0, shift: 9, bits: 5, need: 4 };
        for mask in 0..32u32 {
            for value in 0..32u32 {
                for (relation, holds) in [
                    (Relation::Equal, (|a, b| a == b) as fn(u32, u32) -> bool),
                    (Relation::NotEqual, |a, b| a != b),
                    (Relation::Less, |a, b| a < b),
                    (Relation::Greater, |a, b| a > b),
                    (Relation::LessEqual, |a, b| a <= b),
                    (Relation::GreaterEqual, |a, b| a >= b),
                ] {
                    let e = field.compare(mask, relation, value);
                    assert!(e.size() <= 5 + 2, "{mask:x} {relation:?} {value}: {e:?}");
                    for x in 0..32u32 {
                        let got = eval(&e, x << 9 | 0xffff_c1ff);
                        assert_eq!(got, holds(x & mask, value), "{x} & {mask} {relation:?} {value}: {e:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn fields_lie_in_words() {
        assert_eq!(Field::bytes(264, 2), Field { offset: 264, shift: 16, bits: 16, need: 266 });
        assert_eq!(Field::bytes(15, 1), Field { offset: 12, shift: 0, bits: 8, need: 16 });
        assert_eq!(Field::bytes(12, 4).max(), u32::MAX);
        assert_eq!(Field::part(256, 4, 4), Field { offset: 256, shift: 28, bits: 4, need: 257 });
        let wide = Field::bytes(0, 4).compare(u32::MAX, Relation::Greater, 0x7fff_ffff);
        assert_eq!(wide.size(), 1);
    }
}
