// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of bad source addresses. An address is compared with eight entries of a list at a time.

use std::net::Ipv4Addr;

const LANES: usize = 8;

/// A short list of addresses, stored in groups of eight. The last group is filled up by repeating one of its addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    /// Bit N is set if the last byte of an address of the list is N. This is a cheap test before `contains`. False
    /// positives are rare: bad sources are mostly broadcast addresses, and few hosts have an address that ends with the
    /// same byte as a broadcast address.
    endings: [u64; 4],
    groups: Vec<[u32; LANES]>,
}

impl Addresses {
    pub(super) fn new(list: impl IntoIterator<Item = Ipv4Addr>) -> Addresses {
        let mut all: Vec<u32> = list.into_iter().map(Ipv4Addr::to_bits).collect();
        all.sort_unstable();
        all.dedup();
        let group = |some: &[u32]| {
            let spare = some.first().copied().unwrap_or(0);
            std::array::from_fn(|lane| some.get(lane).copied().unwrap_or(spare))
        };
        let mut endings = [0; 4];
        for a in &all {
            endings[Self::word(*a as u8)] |= 1 << (a & 63);
        }
        Addresses { endings, groups: all.chunks(LANES).map(group).collect() }
    }

    #[inline(always)]
    fn word(last: u8) -> usize {
        usize::from(last >> 6)
    }

    /// Whether an address of the list ends with this byte. If not, `contains` need not be called.
    #[inline(always)]
    pub(super) fn may_end_with(&self, last: u8) -> bool {
        self.endings[Self::word(last)] >> (last & 63) & 1 != 0
    }

    /// The addresses.
    pub(super) fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.groups.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether the list contains an address.
    pub(super) fn contains(&self, addr: u32) -> bool {
        // Compare the whole group without an early exit: eight parallel compares cost less than one mispredicted
        // branch.
        self.groups.iter().any(|group| group.iter().fold(false, |hit, &a| hit | (a == addr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_list_says() {
        for n in [0u32, 1, 2, 7, 8, 9, 16, 17, 40] {
            let list = Addresses::new((0..n).map(|i| Ipv4Addr::from_bits(i * 3)));
            for a in 0..130 {
                assert_eq!(list.contains(a), a % 3 == 0 && a < n * 3, "{a} among {n}");
                assert!(list.may_end_with(a as u8) || !list.contains(a), "{a} among {n}");
            }
        }
    }
}
