// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns registers to the values of one element's code (linear scan). Jumps lead only forward, so a value lives from its
//! first computation to its last use.

use crate::code::stack;
use crate::step::{Label, Step};
use std::collections::{BTreeSet, HashMap};

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a register.
    Register(u8),
    /// On the stack, at this offset.
    Stack(i32),
}

/// Registers that calls change.
const SHORT_LIVED: [u8; 4] = [1, 2, 3, 4];
/// Registers that calls keep.
const LONG_LIVED: [u8; 1] = [8];
/// The last byte of the stack that programs may use.
const END: i32 = -512;

struct Life {
    value: usize,
    from: usize,
    to: usize,
    /// Whether the value is needed after a call on its way.
    crosses: bool,
}

fn lives(steps: &[Step], values: u32) -> Vec<Life> {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; values as usize];
    let mut extend = |value: u32, at: usize| {
        if let Some(span) = spans.get_mut(value as usize) {
            let (from, _) = span.unwrap_or((at, at));
            *span = Some((from, at));
        }
    };
    for (at, step) in steps.iter().enumerate() {
        step.used().into_iter().flatten().for_each(|v| extend(v.0, at));
        step.computed().into_iter().for_each(|v| extend(v.0, at));
    }
    let kept = across_calls(steps);
    let mut lives: Vec<Life> = spans
        .into_iter()
        .enumerate()
        .filter_map(|(value, span)| {
            let (from, to) = span?;
            Some(Life { value, from, to, crosses: kept.contains(&(value as u32)) })
        })
        .collect();
    lives.sort_by_key(|l| l.from);
    lives
}

/// Returns the values that are needed after a call.
fn across_calls(steps: &[Step]) -> BTreeSet<u32> {
    let mut kept = BTreeSet::new();
    // The values that are needed at each label, and at the current step. Jumps lead forward only.
    let mut at_labels: HashMap<Label, BTreeSet<u32>> = HashMap::new();
    let mut needed: BTreeSet<u32> = BTreeSet::new();
    for step in steps.iter().rev() {
        match step {
            Step::Bind(label) => {
                at_labels.insert(*label, needed.clone());
            }
            Step::Jump(_) | Step::Exit(_) => needed.clear(),
            _ => {}
        }
        for label in step.targets().into_iter().flatten() {
            needed.extend(at_labels.get(&label).into_iter().flatten());
        }
        if let Some(value) = step.computed() {
            needed.remove(&value.0);
        }
        if step.calls() {
            kept.extend(&needed);
        }
        needed.extend(step.used().into_iter().flatten().map(|v| v.0));
    }
    kept
}

/// Returns the place of each value. None if the stack is too small.
pub(crate) fn assign(steps: &[Step], values: u32) -> Option<Vec<Place>> {
    let mut places = vec![Place::Register(0); values as usize];
    // The registers in use, with the step at which each becomes free.
    let mut busy: Vec<(u8, usize)> = Vec::new();
    // For each place on the stack, the step at which it becomes free.
    let mut spilled: Vec<usize> = Vec::new();
    for life in lives(steps, values) {
        // An operand that is used for the last time gives its register to the result.
        busy.retain(|(_, until)| *until > life.from);
        let is_free = |r: &&u8| busy.iter().all(|(b, _)| b != *r);
        let long = LONG_LIVED.iter().find(is_free);
        let found = if life.crosses { long } else { SHORT_LIVED.iter().find(is_free).or(long) };
        let place = match found {
            Some(&register) => {
                busy.push((register, life.to));
                Place::Register(register)
            }
            None => {
                let free = spilled.iter().position(|until| *until <= life.from);
                let at = free.unwrap_or(spilled.len());
                let offset = stack::SPILLED - 8 * i32::try_from(at).ok()?;
                if offset < END {
                    return None;
                }
                match spilled.get_mut(at) {
                    Some(until) => *until = life.to,
                    None => spilled.push(life.to),
                }
                Place::Stack(offset)
            }
        };
        if let Some(p) = places.get_mut(life.value) {
            *p = place;
        }
    }
    Some(places)
}
