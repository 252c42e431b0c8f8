// SPDX-License-Identifier: MIT OR Apache-2.0
//! Alignment codes: how the data of packets that leave an element is aligned in memory.
//!
//! | code | the element gives |
//! |---|---|
//! | empty | the alignment that came in, if `packets` says that packets leave as they came, or with bytes less or more at the front; else an unknown one |
//! | `M O` | data whose address modulo M is O |
//! | `network M` | packets whose network header has an address that M divides |

/// How the data of packets that leave an element is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentCode {
    /// What follows from the packet type code.
    Passed,
    /// The address of the data, modulo the first number, is the second.
    Data(u32, u32),
    /// This number divides the address of the network header.
    Network(u32),
}

impl AlignmentCode {
    /// Parses a code; `None` if it is malformed. A modulus is a power of two.
    pub fn parse(code: &str) -> Option<AlignmentCode> {
        let words: Vec<&str> = code.split_whitespace().collect();
        let modulus = |word: &str| word.parse().ok().filter(|m: &u32| m.is_power_of_two());
        Some(match words.as_slice() {
            [] => AlignmentCode::Passed,
            ["network", m] => AlignmentCode::Network(modulus(m)?),
            [m, o] => {
                let m = modulus(m)?;
                AlignmentCode::Data(m, o.parse().ok().filter(|o| *o < m)?)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for (code, want) in [
            ("", Some(AlignmentCode::Passed)),
            ("4 2", Some(AlignmentCode::Data(4, 2))),
            ("network 4", Some(AlignmentCode::Network(4))),
            ("4 4", None),
            ("3 0", None),
            ("0 0", None),
            ("4", None),
            ("network 3", None),
            ("unstrip 14", None),
            ("4 2 1", None),
        ] {
            assert_eq!(AlignmentCode::parse(code), want, "{code}");
        }
    }
}
