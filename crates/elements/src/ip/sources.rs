// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of source addresses that no packet may come from, searched without branches.

use std::net::Ipv4Addr;

const LANES: usize = 8;

/// A short list of addresses in groups of eight; spare lanes repeat an address of the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<[u32; LANES]>);

impl Addresses {
    pub(super) fn new(list: impl IntoIterator<Item = Ipv4Addr>) -> Addresses {
        let mut all: Vec<u32> = list.into_iter().map(Ipv4Addr::to_bits).collect();
        all.sort_unstable();
        all.dedup();
        let group = |some: &[u32]| {
            let spare = some.first().copied().unwrap_or(0);
            std::array::from_fn(|lane| some.get(lane).copied().unwrap_or(spare))
        };
        Addresses(all.chunks(LANES).map(group).collect())
    }

    #[inline]
    fn in_group(group: &[u32; LANES], addr: u32) -> bool {
        // No early way out: eight compares side by side cost less than one branch that is guessed wrong.
        group.iter().fold(false, |hit, &a| hit | (a == addr))
    }

    /// Whether an address is in the list.
    #[inline]
    pub(super) fn contains(&self, addr: u32) -> bool {
        match &self.0[..] {
            [] => false,
            [group] => Self::in_group(group, addr),
            groups => groups.iter().any(|g| Self::in_group(g, addr)),
        }
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
            }
        }
    }
}
