// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Internet checksum: RFC 1071 sums with wide loads, RFC 1624 incremental update.
//!
//! A *sum* is a folded one's-complement sum, not inverted. A *checksum* is its complement, as stored in a
//! header. Both are in host order, the value that `Be16::get` returns.

use crate::Be16;

/// Folds a 64-bit one's-complement sum to 16 bits, end-around carries included.
#[inline]
const fn fold64(sum: u64) -> u16 {
    // The sum of a word and the same word rotated by half has `high + low + carry` in its upper half (RFC 1071 §2).
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// Adds with end-around carry.
#[inline]
const fn add64(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    // Adding the carry cannot overflow: if there is one, `sum` is at most u64::MAX - 1.
    sum.wrapping_add(carry as u64)
}

/// One's-complement sum of 16-bit numbers `a` and `b`.
#[inline]
pub const fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as u16)
}

#[inline]
fn sum_ne20(b: &[u8; 20]) -> u64 {
    // The byte order does not matter until the final fold (RFC 1071 §2(B)).
    let first = u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    let second = u64::from_ne_bytes([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]);
    let third = u32::from_ne_bytes([b[16], b[17], b[18], b[19]]);
    add64(add64(first, second), u64::from(third))
}

/// The bytes that [`Lanes`] takes at a time.
const BLOCK: usize = 64;

/// A sum of many 64-bit words as 32-bit halves, in lanes that the compiler keeps in vector registers. It takes four
/// instructions for 16 bytes: one sum of the whole words, which loses carries, and one of their upper halves. The sum of the
/// lower halves is what they leave of each other. No carry is lost for up to 2^31 words.
#[derive(Default)]
struct Lanes {
    whole: [u64; BLOCK / 8],
    upper: [u64; BLOCK / 8],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<8>();
        for ((whole, upper), word) in self.whole.iter_mut().zip(&mut self.upper).zip(words) {
            let word = u64::from_ne_bytes(*word);
            *whole = whole.wrapping_add(word);
            *upper += word >> 32;
        }
    }
    #[inline(always)]
    fn sum(self) -> u64 {
        let whole = self.whole.iter().fold(0, |sum: u64, w| sum.wrapping_add(*w));
        let upper = self.upper.iter().sum::<u64>();
        whole.wrapping_sub(upper << 32) + upper
    }
}

#[inline]
fn sum_ne(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut sum = if blocks.is_empty() { 0 } else { sum_blocks(blocks) };
    let (words, tail) = rest.as_chunks::<8>();
    for word in words {
        sum = add64(sum, u64::from_ne_bytes(*word));
    }
    add64(sum, tail_ne(tail))
}

/// Apart from the rest, so that short sums do not prepare for long ones.
#[inline(never)]
fn sum_blocks(blocks: &[[u8; BLOCK]]) -> u64 {
    let mut lanes = Lanes::default();
    blocks.iter().for_each(|block| lanes.add(block));
    lanes.sum()
}

/// The last bytes, fewer than a 64-bit word, as a number to be added to the sum of the words.
#[inline]
fn tail_ne(tail: &[u8]) -> u64 {
    let mut sum = 0;
    let (words, tail) = tail.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let (halves, tail) = tail.as_chunks::<2>();
    for half in halves {
        sum += u64::from(u16::from_ne_bytes(*half));
    }
    sum + tail.first().map_or(0, |last| u64::from(u16::from_ne_bytes([*last, 0])))
}

/// Copies as many bytes, fewer than a 64-bit word, and returns the same number.
#[inline]
fn copy_tail_ne(to: &mut [u8], tail: &[u8]) -> u64 {
    let ((to_words, to), (words, rest)) = (to.as_chunks_mut::<4>(), tail.as_chunks::<4>());
    for (to, word) in to_words.iter_mut().zip(words) {
        *to = *word;
    }
    let ((to_halves, to), (halves, last)) = (to.as_chunks_mut::<2>(), rest.as_chunks::<2>());
    for (to, half) in to_halves.iter_mut().zip(halves) {
        *to = *half;
    }
    for (to, last) in to.iter_mut().zip(last) {
        *to = *last;
    }
    tail_ne(tail)
}

/// One's-complement sum of `bytes`, of any length and alignment. An odd last byte is the upper half of a word.
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    u16::from_be(fold64(sum_ne(bytes)))
}

/// Copies `from` to `to`, as many bytes as both have, and returns the [`sum`] of these bytes. It passes over the data once,
/// so it takes less time than a copy and a sum.
#[inline]
pub fn copy(to: &mut [u8], from: &[u8]) -> u16 {
    let length = to.len().min(from.len());
    let (to, from) = (to.split_at_mut(length).0, from.split_at(length).0);
    let ((to_blocks, to), (blocks, from)) = (to.as_chunks_mut::<BLOCK>(), from.as_chunks::<BLOCK>());
    let mut sum = if blocks.is_empty() { 0 } else { copy_blocks(to_blocks, blocks) };
    let ((to_words, to), (words, tail)) = (to.as_chunks_mut::<8>(), from.as_chunks::<8>());
    for (to, word) in to_words.iter_mut().zip(words) {
        *to = *word;
        sum = add64(sum, u64::from_ne_bytes(*word));
    }
    u16::from_be(fold64(add64(sum, copy_tail_ne(to, tail))))
}

/// Apart from the rest, as `sum_blocks` is.
#[inline(never)]
fn copy_blocks(to: &mut [[u8; BLOCK]], from: &[[u8; BLOCK]]) -> u64 {
    let mut lanes = Lanes::default();
    for (to, block) in to.iter_mut().zip(from) {
        *to = *block;
        lanes.add(block);
    }
    lanes.sum()
}

/// The [`sum`] of numbers: 16-bit words, and pairs of words as 32-bit numbers.
#[inline]
pub(crate) fn sum_of(numbers: [u32; 7]) -> u16 {
    fold64(numbers.into_iter().map(u64::from).sum())
}

/// The checksum of `bytes`: the complement of [`sum`].
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The sum of two consecutive parts of a message, from the sum of each. The second part starts at `offset` in the
/// message. If the offset is odd, the bytes of the second sum are swapped (RFC 1071 §2(B)).
#[inline]
pub const fn combine(first: u16, second: u16, offset: usize) -> u16 {
    add(first, if offset & 1 == 1 { second.swap_bytes() } else { second })
}

/// Whether the checksum of a 20-byte IPv4 header is correct (RFC 791 §3.1).
#[inline]
pub fn ipv4_header20_ok(header: &[u8; 20]) -> bool {
    fold64(sum_ne20(header)) == 0xffff
}

/// Computes the checksum of a 20-byte IPv4 header. The current checksum field is ignored.
#[inline]
pub fn ipv4_header20_checksum(header: &[u8; 20]) -> u16 {
    let mut header = *header;
    header[10] = 0;
    header[11] = 0;
    !u16::from_be(fold64(sum_ne20(&header)))
}

/// Computes the checksum of an IPv4 header with options. The current checksum field is ignored.
#[inline]
pub fn ipv4_header_checksum(header: &[u8]) -> u16 {
    match header.split_first_chunk::<20>() {
        Some((plain, [])) => ipv4_header20_checksum(plain),
        Some((plain, options)) => !add(!ipv4_header20_checksum(plain), sum(options)),
        None => checksum(header),
    }
}

/// The checksum after an aligned 16-bit word changed from `old` to `new` (RFC 1624, equation 3).
#[inline]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The checksum after an aligned 32-bit word changed from `old` to `new` (RFC 1624, equation 3, applied twice).
#[inline]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    !fold64(!checksum as u64 + !old as u64 + new as u64)
}

/// Updates a checksum field after the time-to-live was decremented. This is [`update16`] with `new = old - 0x0100`.
/// The result does not depend on `old`, so `old` is not a parameter.
#[inline]
pub fn update_ttl_decrement_field(field: &mut Be16) {
    // The result is ~(~c + 0xfeff), where c is the checksum. This equals c + 0x0100 with end-around carry, except
    // for c = 0xfeff: there the result is 0, not 0xffff. Computing in memory byte order saves two byte swaps
    // (RFC 1071 §2(B)).
    const ONE: u16 = u16::from_be(0x0100);
    let word = u16::from_ne_bytes(field.to_bytes());
    let word = word.wrapping_add(ONE).wrapping_add(u16::from(word >= !ONE));
    *field = Be16::from_bytes(word.to_ne_bytes());
}

/// The sum of the pseudo-header of TCP and UDP over IPv4 (RFC 793 §3.1, RFC 768): addresses, protocol, and the
/// length of transport header and data.
#[inline]
pub const fn pseudo_header_sum(src: u32, dst: u32, protocol: u8, len: u16) -> u16 {
    fold64(src as u64 + dst as u64 + protocol as u64 + len as u64)
}

/// Whether the checksum of a TCP segment or UDP datagram over IPv4 is correct. `segment` is transport header
/// and data. UDP without a checksum is not handled here.
#[inline]
pub fn transport_ok(src: u32, dst: u32, protocol: u8, segment: &[u8]) -> bool {
    transport_sum(src, dst, protocol, segment) == Some(0xffff)
}

/// The checksum of a TCP segment or UDP datagram. Its checksum field must be zero. For UDP, 0xffff is returned
/// instead of 0, because 0 means that there is no checksum (RFC 768). `None` if `segment` is too long for IPv4.
#[inline]
pub fn transport_checksum(src: u32, dst: u32, protocol: u8, segment: &[u8]) -> Option<u16> {
    let checksum = !transport_sum(src, dst, protocol, segment)?;
    Some(if checksum == 0 && protocol == crate::ipv4::protocol::UDP { 0xffff } else { checksum })
}

#[inline]
fn transport_sum(src: u32, dst: u32, protocol: u8, segment: &[u8]) -> Option<u16> {
    let len = u16::try_from(segment.len()).ok()?;
    Some(add(pseudo_header_sum(src, dst, protocol, len), sum(segment)))
}

/// Updates a checksum field after a 16-bit word changed.
#[inline]
pub fn update_field16(field: &mut Be16, old: u16, new: u16) {
    field.set(update16(field.get(), old, new));
}

/// Updates a checksum field after a 32-bit word changed.
#[inline]
pub fn update_field32(field: &mut Be16, old: u32, new: u32) {
    field.set(update32(field.get(), old, new));
}

#[cfg(test)]
mod tests;
