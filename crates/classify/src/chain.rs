// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long chains of tests of one word, which are searched instead of tried one by one.
//!
//! A chain is a list of steps, each the `no` of the one before. All of them compare bits of one word: with one mask, as tests of
//! ports and of hosts, or with masks that are prefixes of each other, as tests of networks. So each step is true for an interval of
//! the word's values. The ends of all intervals divide the values into regions; in a region, the same steps are true for every
//! value. A chain can be entered at any of its steps, so the first true step from there on decides.

use crate::dag::MAX_NODES;
use crate::run::{FastStep, LINEAR};
use std::collections::BTreeSet;

/// This bit marks a target as an entry of a [`Chain`]: the index of one of its steps follows. Such a target is no valid
/// index of a step, because programs have at most [`MAX_NODES`] steps, so the fast loop leaves at it as it does at a leaf.
const CHAIN: u32 = 1 << 30;
const _: () = assert!(MAX_NODES < CHAIN as usize);

/// The largest number of true steps in all regions, for each step of the chain. If there are more, the chain is not searched.
const DEPTH: usize = 16;

/// A chain in a form that can be searched.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// A step that loads the word, with the bits that any step compares.
    word: FastStep,
    /// The first value of each region, and the index of its first element in `matches`. Sorted; the first region begins at 0.
    regions: Vec<(u32, u32)>,
    /// For each region, the positions in the chain of the steps that are true there, sorted, with their targets `yes`.
    matches: Vec<(u32, u32)>,
    /// The target `no` of the last step.
    otherwise: u32,
}

/// A number in network order.
fn number(in_memory: u32) -> u32 {
    u32::from_be_bytes(in_memory.to_ne_bytes())
}

/// Whether all values that a mask allows are an interval, if only the bits of `field` count.
fn is_prefix(mask: u32, field: u32) -> bool {
    let rest = field & !mask;
    rest == 0 || mask == 0 || rest.leading_zeros() > 31 - mask.trailing_zeros()
}

impl Chain {
    /// Makes a chain of steps. None if too many steps are true for the same values.
    fn new(members: &[FastStep], field: u32) -> Option<Chain> {
        let last = members.last()?;
        // The ends of the intervals: the value, whether the interval of a step begins or ends before it, and the step's position.
        let mut ends = Vec::with_capacity(2 * members.len());
        for (position, s) in members.iter().enumerate() {
            let (low, mask) = (number(s.value), number(s.mask));
            ends.push((low, true, position as u32));
            // Behind the last of all values, no interval needs to end.
            ends.extend((low | (field & !mask)).checked_add(1).map(|next| (next, false, position as u32)));
        }
        ends.sort_unstable();
        let mut chain = Chain {
            word: FastStep { mask: u32::from_ne_bytes(field.to_be_bytes()), ..*last },
            regions: vec![(0, 0)],
            matches: Vec::new(),
            otherwise: last.no,
        };
        let mut open = BTreeSet::new();
        for group in ends.chunk_by(|a, b| a.0 == b.0) {
            for &(_, begins, position) in group {
                if begins {
                    open.insert(position)
                } else {
                    open.remove(&position)
                };
            }
            let start = group.first().map_or(0, |end| end.0);
            if start == 0 {
                chain.regions.clear();
            }
            chain.regions.push((start, chain.matches.len() as u32));
            let target = |position: u32| members.get(position as usize).map_or(0, |s| s.yes);
            chain.matches.extend(open.iter().map(|&p| (p, target(p))));
            if chain.matches.len() > DEPTH * members.len() {
                return None;
            }
        }
        Some(chain)
    }

    /// A step that loads the word for [`Chain::target`].
    #[inline]
    pub(crate) fn word(&self) -> &FastStep {
        &self.word
    }

    /// The target of a packet that enters the chain at `position`, where the masked word of the packet is `word`.
    #[inline]
    pub(crate) fn target(&self, position: u32, word: u32) -> u32 {
        let word = number(word);
        let next = self.regions.partition_point(|r| r.0 <= word);
        let start = self.regions.get(next.wrapping_sub(1)).map_or(0, |r| r.1 as usize);
        let end = self.regions.get(next).map_or(self.matches.len(), |r| r.1 as usize);
        let matches = self.matches.get(start..end).unwrap_or_default();
        matches.get(matches.partition_point(|m| m.0 < position)).map_or(self.otherwise, |m| m.1)
    }
}

/// The long chains of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    /// For each step, the number of its chain and its position there. Empty if there is no long chain.
    places: Vec<(u32, u32)>,
}

impl Chains {
    /// Finds the long chains, and redirects the targets that enter them. A chain is not entered near its end, where
    /// trying the steps is as fast.
    pub(crate) fn new(steps: &mut [FastStep]) -> Chains {
        let mut chains: Vec<Chain> = Vec::new();
        let mut lengths = Vec::new();
        let mut places = vec![None; steps.len()];
        let mut refused = vec![false; steps.len()];
        // Targets come after the steps that refer to them, so each chain is found from its first step.
        for start in 0..steps.len() {
            if refused.get(start) == Some(&true) {
                continue;
            }
            let (members, field) = members(steps, &places, start);
            if members.len() <= LINEAR {
                continue;
            }
            let of_chain: Vec<FastStep> = members.iter().filter_map(|&m| steps.get(m).copied()).collect();
            let Some(chain) = Chain::new(&of_chain, field) else {
                members.iter().filter_map(|&m| refused.get_mut(m).map(|r| *r = true)).for_each(drop);
                continue;
            };
            for (position, &m) in members.iter().enumerate() {
                if let Some(place) = places.get_mut(m) {
                    *place = Some((chains.len() as u32, position as u32));
                }
            }
            lengths.push(members.len());
            chains.push(chain);
        }
        if chains.is_empty() {
            return Chains::default();
        }
        let entry = |target: &mut u32| {
            if let Some(&Some((chain, position))) = places.get(*target as usize)
                && lengths.get(chain as usize).is_some_and(|&length| length > position as usize + LINEAR)
            {
                *target |= CHAIN;
            }
        };
        steps.iter_mut().flat_map(|s| [&mut s.yes, &mut s.no]).for_each(entry);
        for chain in &mut chains {
            chain.matches.iter_mut().for_each(|m| entry(&mut m.1));
            entry(&mut chain.otherwise);
        }
        Chains { chains, places: places.into_iter().map(Option::unwrap_or_default).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// The chain that a target enters, and the position there. None if the target is no entry of a chain.
    #[inline]
    pub(crate) fn entered(&self, target: u32) -> Option<(&Chain, u32)> {
        let at = target.checked_sub(CHAIN)?;
        let &(chain, position) = self.places.get(at as usize)?;
        Some((self.chains.get(chain as usize)?, position))
    }
}

/// The steps of the chain that begins at `start`, and the bits that they compare. Steps with a place belong to another chain.
fn members(steps: &[FastStep], places: &[Option<(u32, u32)>], start: usize) -> (Vec<usize>, u32) {
    let mut members = Vec::new();
    let mut masks: Vec<u32> = Vec::new();
    let mut field = 0;
    let mut at = start;
    while let (Some(s), Some(None), Some(first)) = (steps.get(at), places.get(at), steps.get(start)) {
        let mask = number(s.mask);
        if (s.offset, s.transport) != (first.offset, first.transport) {
            break;
        }
        if !masks.contains(&mask) {
            let wider = field | mask;
            if !masks.iter().chain([&mask]).all(|&m| is_prefix(m, wider)) {
                break;
            }
            masks.push(mask);
            field = wider;
        }
        members.push(at);
        at = s.no as usize;
    }
    (members, field)
}
