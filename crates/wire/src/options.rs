// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 options (RFC 791 §3.1): an iterator for untrusted bytes, and the subset copied to fragments.

use crate::ipv4::Ipv4Header;

/// Option types, copied flag included.
pub mod kind {
    /// End of the option list.
    pub const END: u8 = 0;
    /// No operation.
    pub const NOP: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 68;
    /// Security.
    pub const SECURITY: u8 = 130;
    /// Loose source and record route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Stream identifier.
    pub const STREAM_ID: u8 = 136;
    /// Strict source and record route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;
    /// The copied flag: fragments carry all options with this bit.
    pub const COPIED: u8 = 0x80;
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Option<'a> {
    /// Offset of the option from the start of the IPv4 header.
    pub offset: usize,
    /// All bytes of the option: type, length and data. One-byte options have only the type.
    pub bytes: &'a [u8],
}

impl<'a> Ipv4Option<'a> {
    /// The type, see [`kind`].
    #[inline]
    pub fn kind(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// The bytes after type and length.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.bytes.get(2..).unwrap_or_default()
    }

    /// The third byte. In route and timestamp options it is a pointer, counted from 1 at the type byte.
    #[inline]
    pub fn pointer(&self) -> Option<u8> {
        self.bytes.get(2).copied()
    }
}

/// A malformed option. `offset` is the position of the bad byte from the start of the IPv4 header. An ICMP parameter
/// problem gives this position as its pointer (RFC 792: "the octet where an error was detected").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The position of the bad byte: the length byte, or the type byte if the header ends after it.
    pub offset: usize,
}

/// Iterates over the options. The NOP options are included, the END option is not. Iteration ends after an
/// error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Options<'a> {
    /// Iterates over `bytes`, the part of a header after its first 20 bytes.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: Ipv4Header::LEN }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ipv4Option<'a>, OptionError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        let len = match *rest {
            [] | [kind::END, ..] => return None,
            [kind::NOP, ..] => 1,
            [_] => return Some(Err(OptionError { offset: self.offset })),
            [_, len, ..] if len >= 2 => usize::from(len),
            _ => return Some(Err(OptionError { offset: self.offset + 1 })),
        };
        let Some((bytes, rest)) = rest.split_at_checked(len) else {
            return Some(Err(OptionError { offset: self.offset + 1 }));
        };
        let option = Ipv4Option { offset: self.offset, bytes };
        self.rest = rest;
        self.offset += len;
        Some(Ok(option))
    }
}

impl std::iter::FusedIterator for Options<'_> {}

/// Copies the options that all fragments but the first must carry (RFC 791 §3.2): those with the copied bit. Pads
/// them with END to a multiple of 4 bytes. Returns the number of bytes written, at most 40. A malformed option and
/// everything after it are omitted.
pub fn copy_for_fragment(options: &[u8], out: &mut [u8; 40]) -> usize {
    let mut len = 0;
    for option in Options::new(options).map_while(Result::ok) {
        if option.kind() & kind::COPIED == 0 {
            continue;
        }
        let end = len + option.bytes.len();
        // This fails only if `options` has more than 40 bytes. The options of a header never do.
        let Some(place) = out.get_mut(len..end) else { break };
        place.copy_from_slice(option.bytes);
        len = end;
    }
    let padded = len.next_multiple_of(4);
    if let Some(padding) = out.get_mut(len..padded) {
        padding.fill(kind::END);
    }
    padded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Offsets and lengths of the options, then the offset of the bad byte, if any.
    fn walk(bytes: &[u8]) -> (Vec<(usize, usize)>, Option<usize>) {
        let mut good = Vec::new();
        for option in Options::new(bytes) {
            match option {
                Ok(option) => good.push((option.offset, option.bytes.len())),
                Err(error) => return (good, Some(error.offset)),
            }
        }
        (good, None)
    }

    #[test]
    fn options_and_bad_bytes() {
        type Want<'a> = (&'a [u8], &'a [(usize, usize)], Option<usize>);
        let table: &[Want] = &[
            (&[], &[], None),
            (&[0, 7, 1], &[], None),
            (&[1, 1, 7, 3, 4, 0], &[(20, 1), (21, 1), (22, 3)], None),
            // Without a length byte, the type is the bad byte.
            (&[1, 1, 1, 7], &[(20, 1), (21, 1), (22, 1)], Some(23)),
            (&[7, 0, 4, 0], &[], Some(21)),
            (&[7, 1, 4, 0], &[], Some(21)),
            (&[7, 2, 0, 0], &[(20, 2)], None),
            // The option extends beyond the header.
            (&[1, 7, 4, 4], &[(20, 1)], Some(22)),
            (&[148, 4, 0, 0, 7, 255, 0, 0], &[(20, 4)], Some(25)),
        ];
        for (bytes, good, bad) in table {
            assert_eq!(walk(bytes), (good.to_vec(), *bad), "{bytes:?}");
        }
        let mut options = Options::new(&[7, 0, 4, 0]);
        assert!(options.next().unwrap().is_err() && options.next().is_none() && options.next().is_none());
    }

    #[test]
    fn accessors() {
        let option = Options::new(&[7, 7, 4, 1, 2, 3, 4]).next().unwrap().unwrap();
        assert_eq!((option.kind(), option.pointer(), option.data()), (7, Some(4), &[4, 1, 2, 3, 4][..]));
        let nop = Options::new(&[1]).next().unwrap().unwrap();
        assert_eq!((nop.kind(), nop.pointer(), nop.data()), (1, None, &[][..]));
    }

    #[test]
    fn fragments_carry_copied_options() {
        let table: &[(&[u8], &[u8])] = &[
            (&[], &[]),
            (&[1, 1, 1, 0], &[]),
            (&[7, 3, 4, 0], &[]),
            (&[1, 148, 4, 0, 0, 7, 3, 4], &[148, 4, 0, 0]),
            (&[131, 3, 4, 1, 137, 3, 4, 0], &[131, 3, 4, 137, 3, 4, 0, 0]),
            (&[148, 4, 0, 0, 131, 9, 4, 0], &[148, 4, 0, 0]),
        ];
        for (options, want) in table {
            let mut out = [0xaa; 40];
            let len = copy_for_fragment(options, &mut out);
            assert_eq!(&out[..len], *want, "{options:?}");
        }
        // 40 bytes of copied options fit exactly.
        let mut options = vec![131, 37, 4];
        options.resize(37, 9);
        options.extend([148, 3, 0]);
        let mut out = [0xaa; 40];
        assert_eq!(copy_for_fragment(&options, &mut out), 40);
        assert_eq!(out[..], options[..]);
        // Options longer than any header are not copied; the function must not panic.
        let long = [131, 200].repeat(200);
        assert_eq!(copy_for_fragment(&long, &mut out), 0);
        assert!(copy_for_fragment(&[131, 3, 0].repeat(20), &mut out) == 40);
    }

    proptest! {
        #![proptest_config(crate::cases(500))]

        #[test]
        fn any_bytes_are_walked_in_order(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut at = 20;
            for option in Options::new(&bytes) {
                match option {
                    Ok(option) => {
                        prop_assert_eq!(option.offset, at);
                        prop_assert_eq!(option.bytes, &bytes[at - 20..at - 20 + option.bytes.len()]);
                        at += option.bytes.len();
                    }
                    Err(error) => prop_assert!(error.offset == at || error.offset == at + 1),
                }
            }
            let mut out = [0; 40];
            let len = copy_for_fragment(&bytes, &mut out);
            prop_assert!(len <= 40 && len.is_multiple_of(4));
            // The copy is well-formed and contains only copied options.
            prop_assert!(Options::new(&out[..len]).all(|o| o.is_ok_and(|o| o.kind() & 0x80 != 0)));
        }
    }
}
