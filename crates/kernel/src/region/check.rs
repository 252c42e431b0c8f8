// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the code of an element accesses only memory that it may access, whatever the element has described.

use super::Region;
use crate::code::{Refused, stack};
use crate::state::State;
use crate::step::{Arithmetic, Base, Exit, Label, Operand, Step};
use std::collections::HashMap;

/// The facts that are known at a step.
#[derive(Clone, Copy)]
struct Here {
    /// The number of bytes that are present in the frame.
    present: u32,
    /// Whether the end of a shortened packet is stored.
    ended: bool,
}

impl Here {
    fn meet(self, other: Here) -> Here {
        Here { present: self.present.min(other.present), ended: self.ended && other.ended }
    }
}

/// Checks the steps of an element for packets in a state, which may add to so many counters. Also refuses steps that machine code does not have.
pub(super) fn check(steps: &[Step], state: &State, counters: usize) -> Result<(), Refused> {
    fits(state)?;
    let mut labels: HashMap<Label, Here> = HashMap::new();
    let mut bound: Vec<Label> = Vec::new();
    let mut now = Some(Here { present: state.present, ended: state.shortened });
    for (i, step) in steps.iter().enumerate() {
        if let Step::Bind(label) = step {
            if bound.contains(label) {
                return Err("it binds a label twice".into());
            }
            bound.push(*label);
            now = match (now, labels.get(label)) {
                (Some(a), Some(b)) => Some(a.meet(*b)),
                (a, b) => a.or(b.copied()),
            };
            continue;
        }
        let Some(here) = now else { return Err("no packet reaches one of its steps".into()) };
        for label in step.targets().into_iter().flatten() {
            if bound.contains(&label) {
                return Err("it jumps backwards".into());
            }
            labels.entry(label).and_modify(|h| *h = h.meet(here)).or_insert(here);
        }
        if let Step::Count { counter, .. } = step
            && (*counter as usize >= counters || steps.get(i + 1) != Some(&Step::Exit(Exit::Drop)))
        {
            // Counts of other packets may have rates, which need the time of each packet.
            return Err("it counts packets".into());
        }
        now = after(step, here)?;
    }
    if now.is_some() || labels.keys().any(|l| !bound.contains(l)) {
        return Err("a path does not end".into());
    }
    Ok(())
}

/// The facts that are known after a step. None if the next step is not reached from it.
fn after(step: &Step, here: Here) -> Result<Option<Here>, Refused> {
    match step {
        Step::Load { base: Base::Frame, offset, size, .. }
        | Step::Store { base: Base::Frame, offset, size, .. } => {
            let end = i64::from(*offset) + i64::from(size.bytes());
            if *offset < 0 || end > i64::from(here.present) {
                return Err("it accesses bytes that may not be present".into());
            }
        }
        Step::Load { base: Base::Stack, offset: stack::END, size, .. } => {
            if size.bytes() != 8 || !here.ended {
                return Err("it reads the end of a packet that was not shortened".into());
            }
        }
        Step::Store { base: Base::Stack, offset: stack::END, size, .. } => {
            if size.bytes() != 8 {
                return Err("it stores a part of the end of a packet".into());
            }
            return Ok(Some(Here { ended: true, ..here }));
        }
        Step::Load { base: Base::Stack, offset, size, .. }
        | Step::Store { base: Base::Stack, offset, size, .. } => {
            let at = i64::from(*offset) - i64::from(stack::ANNOTATIONS);
            if at < 0 || at + i64::from(size.bytes()) > Region::ANNOTATIONS as i64 {
                return Err("it uses annotations that machine code does not have".into());
            }
        }
        Step::Load { base: Base::Entry(_), .. } | Step::Store { base: Base::Entry(_), .. } => {
            return Err("it uses a table".into());
        }
        Step::Arithmetic { operation: Arithmetic::Divide | Arithmetic::Remainder, right, .. } => {
            if !matches!(right, Operand::Constant(1..)) {
                return Err("it divides by a number that may be 0".into());
            }
        }
        Step::Arithmetic { operation: Arithmetic::ShiftLeft | Arithmetic::ShiftRight, right, .. } => {
            if !matches!(right, Operand::Constant(0..64)) {
                return Err("it shifts by a number that is not known".into());
            }
        }
        Step::Constant { .. }
        | Step::Arithmetic { .. }
        | Step::Swap { .. }
        | Step::Branch { .. }
        | Step::BranchLength { .. }
        | Step::Length { .. }
        | Step::Count { .. }
        | Step::Bind(_) => {}
        Step::Present { end, .. } => return Ok(Some(Here { present: here.present.max(*end), ..here })),
        Step::Jump(_) | Step::Exit(Exit::Drop) => return Ok(None),
        Step::Exit(Exit::Next(_, state) | Exit::Up(_, state)) => {
            fits(state)?;
            let data = u32::try_from(state.data).unwrap_or(u32::MAX);
            if state.present > here.present || data > here.present || (state.shortened && !here.ended) {
                return Err("its exit states more than is known".into());
            }
            return Ok(None);
        }
        Step::Exit(Exit::Send { .. } | Exit::Host { .. }) => return Err("it sends packets".into()),
        Step::Time { .. } | Step::Random { .. } => return Err("it reads the clock or random numbers".into()),
        Step::Address { .. } | Step::Increment { .. } | Step::Decay { .. } | Step::LookUp { .. } => {
            return Err("it uses a table".into());
        }
        Step::MoveStart { .. } => return Err("it needs headroom".into()),
    }
    Ok(Some(here))
}

/// Whether machine code can pass on packets in this state.
fn fits(state: &State) -> Result<(), Refused> {
    let later = state.annotations.get(Region::ANNOTATIONS..).unwrap_or_default();
    if state.ticket || later.iter().any(Option::is_some) {
        return Err("it sets annotations that machine code does not have".into());
    }
    if state.data < 0 || state.network.is_some_and(|(at, _)| at < 0) || state.mac.is_some_and(|at| at < 0) {
        return Err("a header begins before the packet".into());
    }
    Ok(())
}
