// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long chains of tests, which are searched instead of tried one by one.
//!
//! A chain is a list of steps, each the `no` of the one before. A chain can be entered at any of its steps, so the first true
//! step from there on decides. Most steps are *searchable*: they compare bits of one of a few words, and the masks of all that compare
//! one word are equal, as in tests of ports and of hosts, or prefixes of each other, as in tests of networks. So each step is true
//! for an interval of the word's values. The ends of all intervals divide the values into regions; in a region, the same steps
//! are true for every value. The steps that are not searchable are tried.

use crate::dag::MAX_NODES;
use crate::expr::Atom;
use crate::program::{OffsetBase, Output, Step, Target};
use crate::run::{FastStep, LINEAR};
use std::collections::{BTreeSet, HashMap};

/// This bit marks a target as an entry of a [`Chain`]: the index of one of its steps follows. Such a target is no valid
/// index of a step, because programs have at most [`MAX_NODES`] steps, so the fast loop leaves at it as it does at a leaf.
const CHAIN: u32 = 1 << 30;
const _: () = assert!(MAX_NODES < CHAIN as usize);

/// The number of true steps in all regions, for each step of the chain, with which a word is searched in any case.
const DEPTH: usize = 16;
/// The largest number of words that are searched in one chain.
const WORDS: usize = 6;
/// The least length of a chain of several words, and of the list for one of its words. Searching fewer is slower than trying them.
const LEAST: usize = 32;
const LEAST_OF_WORD: usize = 4;
/// The number of true steps, in all regions of all chains of a program, that may be more than [`DEPTH`] for each step.
const ROOM: usize = 1 << 20;

/// The steps of a chain that compare one word, in a form that can be searched.
#[derive(Clone, Debug)]
struct Search {
    /// A step that loads the word, with the bits that any step compares.
    word: FastStep,
    /// The first value of each region, and the index of its first element in `matches`. Sorted; the first region begins at 0.
    regions: Vec<(u32, u32)>,
    /// For each region, the positions in the chain of the steps that are true there, sorted, with their targets `yes`.
    matches: Vec<(u32, u32)>,
}

/// A chain in a form that can be searched.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    searches: Vec<Search>,
    /// The positions of the steps that are not searchable, sorted, with their indices.
    tried: Vec<(u32, u32)>,
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

/// The first element of a sorted list from `position` on.
#[inline]
fn first_from(list: &[(u32, u32)], position: u32) -> Option<(u32, u32)> {
    list.get(list.partition_point(|m| m.0 < position)).copied()
}

impl Search {
    /// Makes a search of steps at positions of a chain. None if too many steps are true for the same values. What it needs of more
    /// than [`DEPTH`] matches for each step is taken from `room`.
    fn new(members: &[(u32, FastStep)], field: u32, room: &mut usize) -> Option<Search> {
        let (_, last) = members.last()?;
        // The ends of the intervals: the value, whether the interval of a step begins or ends before it, and the step's position
        // and target.
        let mut ends = Vec::with_capacity(2 * members.len());
        for &(position, s) in members {
            let (low, mask) = (number(s.value), number(s.mask));
            let step = (position, s.yes);
            ends.push((low, true, step));
            // Behind the last of all values, no interval needs to end.
            ends.extend((low | (field & !mask)).checked_add(1).map(|next| (next, false, step)));
        }
        ends.sort_unstable();
        let word = FastStep { mask: u32::from_ne_bytes(field.to_be_bytes()), ..*last };
        let mut search = Search { word, regions: vec![(0, 0)], matches: Vec::new() };
        let mut open = BTreeSet::new();
        for group in ends.chunk_by(|a, b| a.0 == b.0) {
            for &(_, begins, step) in group {
                if begins {
                    open.insert(step)
                } else {
                    open.remove(&step)
                };
            }
            let start = group.first().map_or(0, |end| end.0);
            if start == 0 {
                search.regions.clear();
            }
            search.regions.push((start, search.matches.len() as u32));
            search.matches.extend(&open);
            if search.matches.len() > *room + DEPTH * members.len() {
                return None;
            }
        }
        *room -= search.matches.len().saturating_sub(DEPTH * members.len());
        Some(search)
    }

    /// The positions and targets of all true steps, where the masked word of the packet is `word`.
    #[inline]
    fn matches(&self, word: u32) -> &[(u32, u32)] {
        let word = number(word);
        let next = self.regions.partition_point(|r| r.0 <= word);
        let start = self.regions.get(next.wrapping_sub(1)).map_or(0, |r| r.1 as usize);
        let end = self.regions.get(next).map_or(self.matches.len(), |r| r.1 as usize);
        self.matches.get(start..end).unwrap_or_default()
    }
}

impl Chain {
    /// The number of comparisons in a search.
    #[cfg(test)]
    pub(crate) fn comparisons(&self) -> usize {
        self.searches.iter().map(|s| s.regions.len().ilog2() as usize + 1).sum()
    }

    /// Searches the chain for one packet. `load` returns the masked word that a step compares; None if it is missing.
    #[inline]
    pub(crate) fn search(&self, load: impl Fn(&FastStep) -> Option<u32>) -> Option<Found<'_>> {
        let mut lists: [&[(u32, u32)]; WORDS] = [&[]; WORDS];
        for (list, search) in lists.iter_mut().zip(&self.searches) {
            *list = search.matches(load(&search.word)?);
        }
        Some(Found { chain: self, lists })
    }
}

/// The steps of a chain that are true for one packet.
pub(crate) struct Found<'a> {
    chain: &'a Chain,
    lists: [&'a [(u32, u32)]; WORDS],
}

impl Found<'_> {
    /// The target of the packet if it enters the chain at `position`.
    #[inline]
    pub(crate) fn target(&self, position: u32) -> u32 {
        let mut first = first_from(&self.chain.tried, position).unwrap_or((u32::MAX, self.chain.otherwise));
        for list in self.lists.iter().take(self.chain.searches.len()) {
            if let Some(found) = first_from(list, position)
                && found.0 < first.0
            {
                first = found;
            }
        }
        first.1
    }
}

/// The long chains of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    /// For each step, the number of its chain and its position there. Empty if there is no long chain.
    places: Vec<(u32, u32)>,
    /// The number of steps that are searched.
    searched: usize,
}

impl Chains {
    /// Finds the long chains, and redirects the targets that enter them. A chain is not entered near its end, where
    /// trying the steps is as fast.
    pub(crate) fn new(steps: &mut [FastStep]) -> Chains {
        let mut chains: Vec<Chain> = Vec::new();
        let mut room = ROOM;
        let mut lengths = Vec::new();
        let mut places = vec![None; steps.len()];
        // For each step, whether it is in a list that was too short or too dense, with several words and with one.
        let mut refused = vec![[false; 2]; steps.len()];
        // Targets come after the steps that refer to them, so each chain is found from its first step.
        for start in 0..steps.len() {
            if places.get(start) != Some(&None) {
                continue;
            }
            for (kind, words) in [(0, WORDS), (1, 1)] {
                if refused.get(start).is_none_or(|r| r[kind]) {
                    continue;
                }
                let members = Members::new(steps, start, words, |at| {
                    places.get(at) == Some(&None) && (kind == 1 || refused.get(at).is_some_and(|r| !r[0]))
                });
                let Some(chain) = members.chain(steps, words, &mut room) else {
                    // Short lists of one word are cheap to find again, from any of their steps.
                    if kind == 0 || members.steps.len() > LINEAR {
                        let marks = members.steps.iter().filter_map(|m| Some((m, refused.get(m.0)?[kind])));
                        let all: Vec<usize> = marks.map(|(m, _)| m.0).collect();
                        for m in all {
                            refused.get_mut(m).into_iter().for_each(|r| r[kind] = true);
                        }
                    }
                    continue;
                };
                for (position, &(at, _)) in members.steps.iter().enumerate() {
                    let searched = chain.tried.binary_search_by_key(&(position as u32), |t| t.0).is_err();
                    if let (Some(place), true) = (places.get_mut(at), searched) {
                        *place = Some((chains.len() as u32, position as u32));
                    }
                }
                lengths.push(members.steps.len());
                chains.push(chain);
                break;
            }
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
            chain.searches.iter_mut().flat_map(|s| &mut s.matches).for_each(|m| entry(&mut m.1));
            entry(&mut chain.otherwise);
        }
        let searched = places.iter().flatten().count();
        Chains { chains, places: places.into_iter().map(Option::unwrap_or_default).collect(), searched }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// The number of steps that are searched.
    pub(crate) fn searched(&self) -> usize {
        self.searched
    }

    /// The number of the chain that a target enters, and the position there. None if the target is no entry of a chain.
    #[inline]
    pub(crate) fn entered(&self, target: u32) -> Option<(u32, u32)> {
        self.places.get(target.checked_sub(CHAIN)? as usize).copied()
    }

    /// The chain with a number.
    #[inline]
    pub(crate) fn get(&self, chain: u32) -> Option<&Chain> {
        self.chains.get(chain as usize)
    }
}

/// Whether a list of tests, each the `no` of the one before, would be a chain that is searched.
pub(crate) fn is_searched(kind: OffsetBase, tests: &[Atom]) -> bool {
    let step = |(at, t): (usize, &Atom)| {
        let (yes, no) = (Target::Output(Output::DROP), Target::Step(at as u32 + 1));
        FastStep::new(kind, &Step { offset: t.offset, mask: t.mask, value: t.value, need: t.need, yes, no })
    };
    let steps: Vec<FastStep> = tests.iter().enumerate().map(step).collect();
    let members = Members::new(&steps, 0, WORDS, |_| true);
    members.chain(&steps, WORDS, &mut ROOM.clone()).is_some()
}

/// A word that steps compare: the offset of a step, the header that it counts from, and the bits of all masks.
struct Word {
    place: (u32, u32),
    masks: Vec<u32>,
    field: u32,
}

/// The steps of a possible chain, with the numbers of the words that they compare. `None` for steps that are not searchable.
struct Members {
    steps: Vec<(usize, Option<usize>)>,
    words: Vec<Word>,
}

impl Members {
    /// The steps from `start` on, up to one that is not `free`. A step that would need more words than `most` is not searchable, or
    /// if only one word is allowed, it ends the list.
    fn new(steps: &[FastStep], start: usize, most: usize, free: impl Fn(usize) -> bool) -> Members {
        let mut members = Members { steps: Vec::new(), words: Vec::new() };
        let mut known: HashMap<(u32, u32, u32), Option<usize>> = HashMap::new();
        let mut at = start;
        while let (Some(s), true) = (steps.get(at), free(at)) {
            let key = (s.offset, s.transport, number(s.mask));
            let word = *known.entry(key).or_insert_with(|| members.word(key, most));
            if most == 1 && word.is_none() {
                break;
            }
            members.steps.push((at, word));
            at = s.no as usize;
        }
        members
    }

    /// The number of the word in which a mask can be searched, which may be a new one.
    fn word(&mut self, (offset, transport, mask): (u32, u32, u32), most: usize) -> Option<usize> {
        let place = (offset, transport);
        let fits = |w: &Word| {
            let wider = w.field | mask;
            w.place == place && w.masks.iter().chain([&mask]).all(|&m| is_prefix(m, wider))
        };
        if let Some(number) = self.words.iter().position(fits) {
            if let Some(word) = self.words.get_mut(number) {
                word.masks.push(mask);
                word.field |= mask;
            }
            return Some(number);
        }
        if self.words.len() >= most {
            return None;
        }
        self.words.push(Word { place, masks: vec![mask], field: mask });
        Some(self.words.len() - 1)
    }

    /// The chain of these steps. None if searching it would not be faster than trying the steps.
    fn chain(&self, steps: &[FastStep], most: usize, room: &mut usize) -> Option<Chain> {
        let (least, of_word) = if most == 1 { (LINEAR + 1, 0) } else { (LEAST, LEAST_OF_WORD) };
        if self.steps.len() < least {
            return None;
        }
        let mut lists = vec![Vec::new(); self.words.len()];
        let mut tried: Vec<(u32, u32)> = Vec::new();
        let positions = self.steps.iter().enumerate();
        for (position, &(at, word)) in positions {
            match (word.and_then(|w| lists.get_mut(w)), steps.get(at)) {
                (Some(list), Some(s)) => list.push((position as u32, *s)),
                _ => tried.push((position as u32, at as u32)),
            }
        }
        let mut searches = Vec::new();
        for (list, word) in lists.iter().zip(&self.words) {
            let search = if list.len() < of_word { None } else { Search::new(list, word.field, room) };
            match search {
                Some(search) => searches.push(search),
                None => {
                    let index = |position: u32| self.steps.get(position as usize).map_or(0, |s| s.0 as u32);
                    tried.extend(list.iter().map(|(position, _)| (*position, index(*position))));
                }
            }
        }
        if tried.len() * LINEAR > self.steps.len() || searches.is_empty() {
            return None;
        }
        tried.sort_unstable();
        let otherwise = steps.get(self.steps.last()?.0)?.no;
        Some(Chain { searches, tried, otherwise })
    }
}
