// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of the kernel's structures, from its type information (BTF, linux/btf.h).

use std::collections::HashSet;

/// Where the kernel tells its types (Linux 5.4).
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// The most anonymous structures inside each other.
const DEPTH: usize = 8;

/// Type information.
#[derive(Debug)]
pub struct Btf {
    strings: Vec<u8>,
    /// The types; the number of the first one is 1.
    types: Vec<Type>,
}

#[derive(Debug)]
struct Type {
    name: u32,
    structure: bool,
    members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    name: u32,
    kind: u32,
    /// The offset in bits.
    bits: u32,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*found))
}

impl Btf {
    /// The types of the running kernel; `None` if it does not tell them.
    pub fn of_kernel() -> Option<Btf> {
        Btf::parse(&std::fs::read(KERNEL).ok()?)
    }

    /// Reads type information in the byte order of this machine; `None` if it is malformed.
    fn parse(bytes: &[u8]) -> Option<Btf> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk::<2>()?);
        if magic != MAGIC {
            return None;
        }
        let size = |at| word(bytes, at).map(|n| n as usize);
        let part = |from: usize, length: usize| bytes.get(size(4)?.checked_add(from)?..)?.get(..length);
        let mut rest = part(size(8)?, size(12)?)?;
        let strings = part(size(16)?, size(20)?)?.to_vec();
        let mut types = Vec::new();
        while !rest.is_empty() {
            let (name, info) = (word(rest, 0)?, word(rest, 4)?);
            let (count, kind) = ((info & 0xffff) as usize, info >> 24 & 0x1f);
            // The bytes after the first 12, for each kind.
            let more = match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                2 | 7..=12 | 16 | 18 => 0,
                _ => return None,
            };
            let after = rest.get(12..)?.get(..more)?;
            let structure = kind == 4 || kind == 5;
            let member = |m: &[u8; 12]| {
                let offset = word(m, 8)?;
                let bits = if info >> 31 == 1 { offset & 0x00ff_ffff } else { offset };
                Some(Member { name: word(m, 0)?, kind: word(m, 4)?, bits })
            };
            let (members, _) = after.as_chunks::<12>();
            let members =
                if structure { members.iter().map(member).collect::<Option<_>>()? } else { Vec::new() };
            types.push(Type { name, structure, members });
            rest = rest.get(12 + more..)?;
        }
        Some(Btf { strings, types })
    }

    fn name(&self, at: u32) -> &[u8] {
        let from = self.strings.get(at as usize..).unwrap_or_default();
        from.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// The offset in bytes of a member of a structure, which may lie in an anonymous structure inside.
    pub fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let named =
            |t: &&Type| t.structure && !t.members.is_empty() && self.name(t.name) == structure.as_bytes();
        let found = self.types.iter().find(named)?;
        let bits = self.find(found, member, DEPTH, &mut HashSet::new())?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    fn find(&self, within: &Type, member: &str, depth: usize, seen: &mut HashSet<u32>) -> Option<u32> {
        within.members.iter().find_map(|m| {
            let name = self.name(m.name);
            if name == member.as_bytes() {
                return Some(m.bits);
            }
            if !name.is_empty() || depth == 0 || !seen.insert(m.kind) {
                return None;
            }
            let inner = self.types.get((m.kind as usize).checked_sub(1)?)?;
            self.find(inner, member, depth - 1, seen)?.checked_add(m.bits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type information with the structures `a { x at 0; anonymous at 8 { y at 4 } }` and an integer before them.
    fn example() -> Vec<u8> {
        let strings = b"\0a\0x\0y\0int\0";
        let mut types: Vec<u32> = vec![7, 1 << 24, 4, 32];
        types.extend([0, 4 << 24 | 1, 8, 5, 1, 32]);
        types.extend([1, 4 << 24 | 2, 16, 3, 1, 0, 0, 2, 64]);
        let types: Vec<u8> = types.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let mut out = MAGIC.to_ne_bytes().to_vec();
        out.extend([1, 0]);
        for n in [24, 0, types.len(), types.len(), strings.len()] {
            out.extend((n as u32).to_ne_bytes());
        }
        [out, types, strings.to_vec()].concat()
    }

    #[test]
    fn members_are_found_inside_anonymous_structures() {
        let btf = Btf::parse(&example()).unwrap_or_else(|| panic!("malformed"));
        assert_eq!([btf.offset("a", "x"), btf.offset("a", "y")], [Some(0), Some(12)]);
        assert_eq!([btf.offset("a", "z"), btf.offset("b", "x"), btf.offset("int", "x")], [None; 3]);
    }

    #[test]
    fn malformed_information_is_refused() {
        let whole = example();
        for cut in 0..whole.len() {
            let _ = Btf::parse(&whole[..cut]).map(|b| b.offset("a", "y"));
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            let _ = Btf::parse(&other).map(|b| b.offset("a", "y"));
        }
        assert!(Btf::parse(&[]).is_none() && Btf::parse(b"\0\0nonsense").is_none());
    }

    #[test]
    fn the_running_kernel_tells_its_types() {
        let Some(btf) = Btf::of_kernel() else { return println!("SKIP: the kernel does not tell its types") };
        // The name is the first member of this structure in all kernels.
        assert_eq!(btf.offset("net_device", "no such member"), None);
        assert!(btf.offset("net_device", "ifindex").is_some_and(|n| n % 4 == 0 && n > 0));
        assert!(btf.offset("ns_common", "inum").is_some());
    }
}
