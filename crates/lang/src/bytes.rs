// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts that hold any bytes. A byte that is not valid UTF-8 becomes a character of its own, and becomes the same
//! byte again where text leaves the program.
//!
//! The characters are the last 128 of Unicode, in a private-use plane: U+10FF80 for the byte 0x80 to U+10FFFF for 0xFF.
//! Such a character in the input is escaped byte by byte as well, so that [`encode`] always inverts [`decode`].
//!
//! ```
//! use castanet_lang::bytes::{decode, encode};
//! assert_eq!(decode("né".as_bytes()), "né");
//! assert_eq!(decode(b"a\xff"), "a\u{10ffff}");
//! assert_eq!(*encode("a\u{10ffff}"), *b"a\xff");
//! ```

use std::borrow::Cow;

/// The first two bytes of the UTF-8 form of every escape character.
const LEAD: [u8; 2] = [0xf4, 0x8f];

/// The escape character for a byte, which must be 0x80 or greater.
fn escape(byte: u8) -> char {
    char::from_u32(0x10_ff00 | u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that an escape character stands for; `None` for any other character.
fn escaped(c: char) -> Option<u8> {
    let offset = u32::from(c).checked_sub(0x10_ff00)?;
    u8::try_from(offset).ok().filter(|b| *b >= 0x80)
}

/// Whether a text has escape characters, which stand for bytes that are not UTF-8.
pub fn has_escapes(text: &str) -> bool {
    // The byte `LEAD[0]` is rare in texts, so the fast search for it usually decides.
    text.as_bytes().contains(&LEAD[0]) && text.chars().any(|c| escaped(c).is_some())
}

/// Returns bytes as text. An escape character stands for each byte that is not valid UTF-8.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !has_escapes(text)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match escaped(c) {
                Some(_) => out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(escape)),
                None => out.push(c),
            }
        }
        out.extend(chunk.invalid().iter().map(|&b| escape(b)));
    }
    Cow::Owned(out)
}

/// Like [`decode`], but takes a vector and does not copy valid UTF-8.
pub fn decode_vec(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !has_escapes(&text) => text,
        Ok(text) => decode(text.as_bytes()).into_owned(),
        Err(e) => decode(e.as_bytes()).into_owned(),
    }
}

/// The bytes of a text, with each escape character turned back into its byte.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if !has_escapes(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match escaped(c) {
            Some(b) => out.push(b),
            None => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Cow::Owned(out)
}

/// The number of bytes that [`encode`] returns for a text.
pub fn length(text: &str) -> usize {
    encode(text).len()
}

/// The bytes of a text and a line end, so that one call writes both.
pub fn line(text: &str) -> Vec<u8> {
    let mut bytes = encode(text).into_owned();
    bytes.push(b'\n');
    bytes
}

/// A text for formats that must be UTF-8, such as JSON: U+FFFD replaces each byte that is not valid UTF-8.
pub fn replaced(text: &str) -> Cow<'_, str> {
    match has_escapes(text) {
        true => text.replace(|c| escaped(c).is_some(), "\u{fffd}").into(),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_characters_of_the_input_are_escaped() {
        let genuine = "\u{10ff80}\u{10ffff}\u{10ff7f}";
        let text = decode(genuine.as_bytes());
        assert_eq!(text.chars().count(), 9);
        assert_eq!(*encode(&text), *genuine.as_bytes());
    }

    #[test]
    fn every_byte_is_one_character() {
        let all: Vec<u8> = (0..=255).collect();
        let text = decode(&all);
        assert_eq!((text.chars().count(), length(&text)), (256, 256));
        assert_eq!(*encode(&text), *all);
        assert_eq!(replaced(&text).chars().filter(|c| *c == '\u{fffd}').count(), 128);
        assert!(std::str::from_utf8(&encode(&replaced(&text))).is_ok());
    }

    proptest! {
        #[test]
        fn encode_inverts_decode(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(0xf4), Just(0x8f), Just(0xbf), Just(0x80)], 0..40,
        )) {
            let text = decode(&bytes);
            prop_assert_eq!(&*encode(&text), &*bytes);
            prop_assert_eq!(decode_vec(bytes.clone()), &*text);
            prop_assert_eq!(has_escapes(&text), std::str::from_utf8(&bytes).map_or(true, has_escapes));
        }

        #[test]
        fn utf8_stays_as_it_is(text in "[^\u{10ff80}-\u{10ffff}]*") {
            prop_assert_eq!(decode(text.as_bytes()), &*text);
            prop_assert_eq!(&*encode(&text), text.as_bytes());
            prop_assert_eq!(replaced(&text), &*text);
        }
    }
}
