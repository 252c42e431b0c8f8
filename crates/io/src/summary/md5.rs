// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MD5 message digest (RFC 1321). Dumps use it to compare payloads without storing them.

/// The rotation of each step. Each of the four rounds repeats its row of four values (RFC 1321 section 3.4).
const ROTATE: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The table T: 2^32 times the absolute sine of 1, 2, ... 64 (RFC 1321 section 3.4).
const SINES: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];

/// Returns the state after one more block of 64 bytes.
fn block(state: [u32; 4], block: &[u8; 64]) -> [u32; 4] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = state;
    for (i, sine) in SINES.iter().enumerate() {
        let (mixed, word) = match i / 16 {
            0 => ((b & c) | (!b & d), i),
            1 => ((d & b) | (!d & c), 5 * i + 1),
            2 => (b ^ c ^ d, 3 * i + 5),
            _ => (c ^ (b | !d), 7 * i),
        };
        // The indices are taken modulo the lengths of the tables.
        let sum = a.wrapping_add(mixed).wrapping_add(*sine).wrapping_add(words[word % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(ROTATE[i / 16 % 4][i % 4]));
    }
    let [a0, b0, c0, d0] = state;
    [a0.wrapping_add(a), b0.wrapping_add(b), c0.wrapping_add(c), d0.wrapping_add(d)]
}

/// The digest of `data`.
pub(super) fn md5(data: &[u8]) -> [u8; 16] {
    let mut state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
    let (blocks, rest) = data.as_chunks::<64>();
    for b in blocks {
        state = block(state, b);
    }
    // The padding: a one bit, zeros, and the length in bits (RFC 1321 sections 3.1 and 3.2).
    let mut last = [[0; 64]; 2];
    let flat = last.as_flattened_mut();
    for (to, from) in flat.iter_mut().zip(rest.iter().chain(&[0x80])) {
        *to = *from;
    }
    let end = if rest.len() < 56 { 64 } else { 128 };
    let bits = (data.len() as u64).wrapping_mul(8).to_le_bytes();
    if let Some(place) = flat.get_mut(end - 8..end) {
        place.copy_from_slice(&bits);
    }
    for b in last.iter().take(end / 64) {
        state = block(state, b);
    }
    let mut out = [0; 16];
    for (to, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *to = word.to_le_bytes();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::md5;

    /// The test suite of RFC 1321 section A.5.
    #[test]
    fn suite_of_the_rfc() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "d174ab98d277d9f5a5611c2c9f419d9f",
            ),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            let hex: String = md5(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hex, digest, "{text}");
        }
    }
}
