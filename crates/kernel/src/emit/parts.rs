// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the instructions of programs that are cut into parts.

use super::{KEPT, Out, Tail};
use crate::assembly::{CONTEXT, Emitter, FRAME, STACK, Target, context};
use crate::code::{Refused, position, stack};
use crate::compile::{Fragment, Program, Report, Router};
use crate::instruction::{code, helper};
use crate::split::{Entry, Unit, Units, falls_to, part_of, units};
use crate::step::{Counter, MapName, Size, Step};
use std::collections::BTreeMap;

/// The length of the data that parts pass: the number of the entry, and the end of the stack from the ticket on.
pub const PASSED: u32 = 8 + (-stack::TICKET).cast_unsigned();

/// Where the bytes at an offset of the stack are in the data that parts pass.
fn passed(offset: i32) -> i32 {
    8 + offset - stack::TICKET
}

/// Makes a program of parts with about `limit` instructions.
pub(super) fn cut(
    fragments: &[Fragment],
    mut elements: BTreeMap<u32, Report>,
    router: &mut Router,
    (lost, limit): (Counter, usize),
) -> Result<Program, Refused> {
    let mut units = units(fragments, &router.points);
    let mut trial = Out::new(router, lost);
    for unit in &mut units.all {
        let Some(fragment) = fragments.get(unit.fragment) else { continue };
        let before = trial.assembly.instructions.len();
        trial.unit(fragment, unit, None);
        unit.size = trial.assembly.instructions.len() - before;
        if let Some(report) = elements.get_mut(&fragment.element) {
            report.instructions += unit.size;
        }
    }
    let ranges = units.parts(limit)?;
    // For each part, the targets at which others call it. Only earlier parts do.
    let mut called: Vec<Vec<Target>> = vec![Vec::new(); ranges.len()];
    let mut parts = Vec::new();
    for (number, range) in ranges.iter().enumerate() {
        let mut out = Out::new(router, lost);
        out.origin(None);
        out.begin();
        if number > 0 {
            out.enter(fragments, &units, called.get(number).map(Vec::as_slice).unwrap_or_default())?;
        }
        for at in range.clone() {
            let Some(unit) = units.all.get(at) else { continue };
            let Some(fragment) = fragments.get(unit.fragment) else { continue };
            let next = units.all.get(at + 1).filter(|_| at + 1 < range.end);
            out.unit(fragment, unit, next);
        }
        out.origin(None);
        for target in out.assembly.elsewhere() {
            let (unit, entry) =
                units.entries.get(&target).ok_or("a jump leads to a place that no part has")?;
            let to = part_of(&ranges, *unit);
            let targets = called.get_mut(to).filter(|_| to > number).ok_or("a jump leads backward")?;
            out.assembly.place(target);
            out.assembly.constant(KEPT, position(targets, target).into());
            out.go(Tail::Part { number: u32::try_from(to).unwrap_or(u32::MAX), words: entry.words.clone() });
        }
        parts.push(out.end()?);
    }
    Ok(Program { parts, elements })
}

impl Out<'_> {
    /// Makes the instructions of a unit. `next` is the one that follows in the same part.
    fn unit(&mut self, fragment: &Fragment, unit: &Unit, next: Option<&Unit>) {
        if unit.begins() {
            self.assembly.place(Target::Fragment(unit.fragment));
        }
        self.origin(Some(fragment.element));
        let mut exit = unit.exit;
        for at in unit.steps.clone() {
            let Some(step) = fragment.steps.get(at) else { continue };
            if let Step::Exit(_) = step {
                let to = fragment.ways.get(exit).and_then(|way| self.exit(way));
                exit += 1;
                let follows = |to: usize| next.is_some_and(|n| n.begins() && n.fragment == to);
                if let Some(to) = to.filter(|to| at + 1 < unit.steps.end || !follows(*to)) {
                    self.assembly.go(Target::Fragment(to));
                }
            } else {
                let (fragment, places) = (unit.fragment, fragment.places.as_slice());
                Emitter { out: &mut self.assembly, fragment, places }.step(step);
            }
        }
        if let Some(label) = falls_to(fragment, unit.steps.end)
            && next.is_none()
        {
            self.assembly.go(Target::Label(unit.fragment, label));
        }
    }

    /// The code at the start of a part that others call: loads what they have passed, and continues at one of `targets`.
    fn enter(&mut self, fragments: &[Fragment], units: &Units, targets: &[Target]) -> Result<(), Refused> {
        self.find_passed();
        self.assembly.load(1, 0, 0, Size::Double);
        let all: Option<Vec<(Target, &Entry)>> =
            targets.iter().map(|t| Some((*t, &units.entries.get(t)?.1))).collect();
        let all = all.filter(|all| !all.is_empty()).ok_or("a part is never called")?;
        self.entries(fragments, &all, 0);
        Ok(())
    }

    /// Finds, by the number in register 1, one of the entries that begin with number `first`.
    fn entries(&mut self, fragments: &[Fragment], entries: &[(Target, &Entry)], first: usize) {
        if let [(target, entry)] = entries {
            return self.entry(fragments, *target, entry);
        }
        let half = entries.len() / 2;
        let Some((lower, upper)) = entries.split_at_checked(half) else { return };
        let middle = first + half;
        let at = i32::try_from(middle).unwrap_or(i32::MAX);
        self.assembly.jump(code::JUMP | code::JGE, 1, 0, at, Target::Entries(middle));
        self.entries(fragments, lower, first);
        self.assembly.place(Target::Entries(middle));
        self.entries(fragments, upper, middle);
    }

    fn entry(&mut self, fragments: &[Fragment], target: Target, entry: &Entry) {
        for &(offset, size) in &entry.words {
            self.assembly.load(1, 0, passed(offset), size);
            self.assembly.store(STACK, offset, 1, size);
        }
        if entry.present > 0 {
            // The bytes are there, but the kernel's verifier does not know that in this part.
            let lost = self.target(Tail::Lost);
            let a = &mut self.assembly;
            a.load(0, CONTEXT, context::DATA_END.into(), Size::Word);
            a.copy(1, FRAME);
            a.add(1, entry.present.cast_signed());
            a.jump(code::JUMP | code::JGT | code::REGISTER, 1, 0, 0, lost);
        }
        let fragment = entry.fragment;
        let places = fragments.get(fragment).map_or(&[][..], |f| f.places.as_slice());
        for step in &entry.loads {
            Emitter { out: &mut self.assembly, fragment, places }.step(step);
        }
        self.assembly.go(target);
    }

    /// Puts the address of the data that parts pass into register 0.
    fn find_passed(&mut self) {
        let a = &mut self.assembly;
        a.store_constant(STACK, stack::KEY, 0, Size::Word);
        a.map(1, MapName::Passed);
        a.copy(2, STACK);
        a.add(2, stack::KEY);
        a.call(helper::MAP_LOOKUP);
        let lost = self.target(Tail::Lost);
        self.assembly.jump(code::JUMP | code::JEQ, 0, 0, 0, lost);
    }

    /// Passes words of the stack and the number of the entry to another part, and calls it.
    pub(super) fn call_part(&mut self, number: u32, words: &[(i32, Size)]) {
        self.find_passed();
        let a = &mut self.assembly;
        a.store(0, 0, KEPT, Size::Double);
        for &(offset, size) in words {
            a.load(1, STACK, offset, size);
            a.store(0, passed(offset), 1, size);
        }
        a.copy(1, CONTEXT);
        a.map(2, MapName::Parts);
        a.constant(3, number.into());
        a.call(helper::TAIL_CALL);
        // The kernel continues here if the part is missing.
        self.go(Tail::Lost);
    }
}
