// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the fragments of a program in order, and makes its instructions.

mod parts;

pub use parts::PASSED;

use crate::assembly::{Assembly, CONTEXT, COUNTERS, Emitter, FRAME, STACK, Target, context};
use crate::code::{Refused, position, stack};
use crate::compile::{Fragment, Part, Point, Program, Reasons, Report, Router, Way, lost};
use crate::handover;
use crate::instruction::{code, helper};
use crate::state::State;
use crate::step::{Counter, MapName, Size, Step};
use std::collections::BTreeMap;

/// Results of XDP programs.
mod result {
    pub const DROP: i64 = 1;
    pub const PASS: i64 = 2;
    pub const REDIRECT: i32 = 4;
}

/// The most counters of a router: the kernel's limit for a value of an array with a value for each processor is 32 kB.
const COUNTER_LIMIT: usize = 4096;
/// The register that keeps a number across calls. No value is alive where it is used.
const KEPT: u8 = 8;

/// The end of a program. Exits that end alike share the code.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tail {
    /// Passes the frame to user level. The words are the annotation words that the record has.
    Up { shortened: bool, ticket: bool, words: Vec<usize> },
    /// Sends the frame by a device.
    Send { data: i32, shortened: bool, counter: u32 },
    /// Passes the frame to the host.
    Host { data: i32, shortened: bool, counter: u32 },
    /// Calls another part of the program. The words are those of the stack that it needs.
    Part { number: u32, words: Vec<(i32, Size)> },
    /// Counts a frame that could not be moved or passed on, and drops it.
    Lost,
}

struct Out<'a> {
    assembly: Assembly,
    router: &'a mut Router,
    tails: Vec<Tail>,
    lost: u32,
    origins: Vec<(usize, Option<u32>)>,
}

/// Makes the program. If it has more than `limit` instructions, it is cut into parts.
pub(crate) fn emit(
    fragments: &[Fragment],
    elements: BTreeMap<u32, Report>,
    router: &mut Router,
    (element, reasons): (u32, Reasons),
    limit: usize,
) -> Result<Program, Refused> {
    let lost = lost(element, reasons);
    let program = match whole(fragments, elements.clone(), router, lost) {
        Some(program) if program.instructions() <= limit => program,
        _ => parts::cut(fragments, elements, router, (lost, limit))?,
    };
    if router.points.len() > handover::POINTS {
        return Err("packets can go up at too many points".into());
    }
    if router.shared.counters.len() > COUNTER_LIMIT {
        return Err("the router has too many counters".into());
    }
    Ok(program)
}

/// Makes the program in one piece. None if it is too large for the distances of its jumps.
fn whole(
    fragments: &[Fragment],
    mut elements: BTreeMap<u32, Report>,
    router: &mut Router,
    lost: Counter,
) -> Option<Program> {
    let mut out = Out::new(router, lost);
    out.begin();
    // The rest of fragments whose first exit has led to another fragment: the fragment, the step and the exit to go on with.
    let mut rest = vec![(0, 0, 0)];
    while let Some((number, step, exit)) = rest.pop() {
        out.run(fragments, (number, step, exit), &mut rest, &mut elements);
    }
    Some(Program { parts: vec![out.end().ok()?], elements })
}

/// Makes the program that passes all frames to user level as they are.
pub(crate) fn emit_passage(
    router: &mut Router,
    (element, reasons): (u32, Reasons),
) -> Result<Program, Refused> {
    let mut out = Out::new(router, lost(element, reasons));
    // Packets enter the router at user level, so those that are lost have not entered it before.
    if let Some(together) = out.router.shared.counters.get_mut(out.lost as usize) {
        together.push(Counter::Entered(element));
    }
    out.begin();
    let lost = out.target(Tail::Lost);
    out.pass_to_socket(lost);
    Ok(Program { parts: vec![out.end()?], elements: BTreeMap::new() })
}

impl<'a> Out<'a> {
    fn new(router: &'a mut Router, lost: Counter) -> Out<'a> {
        let assembly = Assembly::default();
        let mut out = Out { assembly, router, tails: Vec::new(), lost: 0, origins: Vec::new() };
        out.lost = out.counter(lost);
        out
    }

    /// Makes the ends of paths, and sets the distances of jumps.
    fn end(mut self) -> Result<Part, Refused> {
        self.origin(None);
        let mut done = 0;
        while done < self.tails.len() {
            self.tail(done);
            done += 1;
        }
        self.assembly.link()?;
        let Assembly { instructions, maps, .. } = self.assembly;
        Ok(Part { instructions, maps, origins: self.origins })
    }

    /// Notes to which element the following instructions belong.
    fn origin(&mut self, element: Option<u32>) {
        self.origins.push((self.assembly.instructions.len(), element));
    }

    /// The number of a counter.
    fn counter(&mut self, counter: Counter) -> u32 {
        position(&mut self.router.shared.counters, vec![counter])
    }

    /// The code before the first fragment: finds the counters of this processor.
    fn begin(&mut self) {
        let a = &mut self.assembly;
        a.copy(CONTEXT, 1);
        a.store_constant(STACK, -4, 0, Size::Word);
        a.map(1, MapName::Counters);
        a.copy(2, STACK);
        a.add(2, -4);
        a.call(helper::MAP_LOOKUP);
        a.copy(COUNTERS, 0);
        // The entry always exists, but the kernel's verifier does not know that.
        a.push(code::JUMP | code::JNE, 0, 0, 2, 0);
        a.constant(0, result::DROP);
        a.push(code::EXIT, 0, 0, 0, 0);
        a.load(FRAME, CONTEXT, context::DATA.into(), Size::Word);
    }

    /// Makes the instructions of a fragment up to its first exit, then those of the fragment that this exit leads to, and so
    /// on. The rests of these fragments follow later.
    fn run(
        &mut self,
        fragments: &[Fragment],
        (mut number, mut from, mut exit): (usize, usize, usize),
        rest: &mut Vec<(usize, usize, usize)>,
        elements: &mut BTreeMap<u32, Report>,
    ) {
        while let Some(fragment) = fragments.get(number) {
            if from == 0 {
                if self.assembly.is_placed(Target::Fragment(number)) {
                    return;
                }
                self.assembly.place(Target::Fragment(number));
            }
            let before = self.assembly.instructions.len();
            self.origin(Some(fragment.element));
            let steps = fragment.steps.get(from..).unwrap_or_default();
            let end = steps.iter().position(|s| matches!(s, Step::Exit(_))).unwrap_or(steps.len());
            let mut emitter = Emitter { out: &mut self.assembly, fragment: number, places: &fragment.places };
            steps.iter().take(end).for_each(|s| emitter.step(s));
            if from + end + 1 < fragment.steps.len() {
                rest.push((number, from + end + 1, exit + 1));
            }
            let next = fragment.ways.get(exit).and_then(|way| self.exit(way));
            if let Some(report) = elements.get_mut(&fragment.element) {
                report.instructions += self.assembly.instructions.len() - before;
            }
            match next {
                Some(next) => (number, from, exit) = (next, 0, 0),
                None => return,
            }
        }
    }

    /// Makes the instructions of an exit. Returns the fragment that must follow.
    fn exit(&mut self, way: &Way) -> Option<usize> {
        match way {
            Way::Fragment(next) => {
                let target = Target::Fragment(*next);
                if !self.assembly.is_placed(target) {
                    return Some(*next);
                }
                self.assembly.go(target);
            }
            Way::Drop => {
                self.assembly.constant(0, result::DROP);
                self.assembly.push(code::EXIT, 0, 0, 0, 0);
            }
            Way::Up(point) => {
                let Point { element, state, .. } = self.router.points.get(*point as usize)?;
                let (element, shortened, ticket) = (*element, state.shortened, state.ticket);
                let words = state.dynamic_words().collect();
                let counter = self.counter(Counter::Raised(element));
                self.assembly.count(counter, Err(1));
                let place = handover::place(self.router.generation, *point);
                self.assembly.constant(KEPT, i64::from(place));
                self.go(Tail::Up { shortened, ticket, words });
            }
            Way::Send { device, counter, state: State { data, shortened, .. } } => {
                self.assembly.constant(KEPT, i64::from(*device));
                self.go(Tail::Send { data: *data, shortened: *shortened, counter: *counter });
            }
            Way::Host { counter, state: State { data, shortened, .. } } => {
                self.go(Tail::Host { data: *data, shortened: *shortened, counter: *counter });
            }
        }
        None
    }

    /// The target for a tail.
    fn target(&mut self, tail: Tail) -> Target {
        let at = self.tails.iter().position(|t| *t == tail).unwrap_or_else(|| {
            self.tails.push(tail);
            self.tails.len() - 1
        });
        Target::Tail(at)
    }
    fn go(&mut self, tail: Tail) {
        let target = self.target(tail);
        self.assembly.go(target);
    }

    fn tail(&mut self, number: usize) {
        let Some(tail) = self.tails.get(number).cloned() else { return };
        self.assembly.place(Target::Tail(number));
        match tail {
            Tail::Up { shortened, ticket, words } => self.up(shortened, ticket, &words),
            Tail::Send { data, shortened, counter } => {
                self.move_ends(data, shortened);
                let a = &mut self.assembly;
                a.map(1, MapName::Devices);
                a.copy(2, KEPT);
                a.constant(3, result::DROP);
                a.call(helper::REDIRECT_MAP);
                let lost = self.target(Tail::Lost);
                self.assembly.jump(code::JUMP | code::JNE, 0, 0, result::REDIRECT, lost);
                self.add_one(counter);
                self.assembly.push(code::EXIT, 0, 0, 0, 0);
            }
            Tail::Host { data, shortened, counter } => {
                self.move_ends(data, shortened);
                self.add_one(counter);
                self.assembly.constant(0, result::PASS);
                self.assembly.push(code::EXIT, 0, 0, 0, 0);
            }
            Tail::Part { number, words } => self.call_part(number, &words),
            Tail::Lost => {
                self.add_one(self.lost);
                self.assembly.constant(0, result::DROP);
                self.assembly.push(code::EXIT, 0, 0, 0, 0);
            }
        }
    }

    /// Adds 1 to a counter, without changing register 0.
    fn add_one(&mut self, counter: u32) {
        let a = &mut self.assembly;
        let offset = i32::try_from(counter).unwrap_or(i32::MAX).saturating_mul(8);
        a.load(1, COUNTERS, offset, Size::Double);
        a.add(1, 1);
        a.store(COUNTERS, offset, 1, Size::Double);
    }

    /// Calls a function that takes the context and the number in register 2. Frames for which it fails are lost.
    fn adjust(&mut self, function: i32) {
        self.assembly.copy(1, CONTEXT);
        self.assembly.call(function);
        let lost = self.target(Tail::Lost);
        self.assembly.jump(code::JUMP | code::JNE, 0, 0, 0, lost);
    }

    /// Makes the frame begin and end where the packet does.
    fn move_ends(&mut self, data: i32, shortened: bool) {
        if shortened {
            let a = &mut self.assembly;
            a.copy(1, CONTEXT);
            a.call(helper::LENGTH);
            a.load(2, STACK, stack::END, Size::Double);
            a.push(code::ALU64 | code::SUB | code::REGISTER, 2, 0, 0, 0);
            // Most packets fill their frames.
            let calls = 3;
            a.push(code::JUMP | code::JEQ, 2, 0, calls, 0);
            self.adjust(helper::ADJUST_TAIL);
        }
        if data != 0 {
            self.assembly.constant(2, data.into());
            self.adjust(helper::ADJUST_HEAD);
        }
    }

    /// Puts a record before the frame, and passes both to the socket of the queue.
    fn up(&mut self, shortened: bool, ticket: bool, words: &[usize]) {
        let mark = self.router.mark;
        let length = handover::length(shortened, ticket, words.len()).cast_signed();
        let a = &mut self.assembly;
        a.copy(1, CONTEXT);
        a.constant(2, (-length).into());
        a.call(helper::ADJUST_META);
        // If the driver does not support metadata, the record becomes the start of the frame.
        a.load(1, CONTEXT, context::META.into(), Size::Word);
        a.load(2, CONTEXT, context::DATA.into(), Size::Word);
        let by_head = 6;
        a.push(code::JUMP | code::JEQ, 0, 0, by_head, 0);
        a.constant(2, (-length).into());
        self.adjust(helper::ADJUST_HEAD);
        let a = &mut self.assembly;
        a.load(1, CONTEXT, context::DATA.into(), Size::Word);
        a.load(2, CONTEXT, context::DATA_END.into(), Size::Word);
        a.copy(3, 1);
        a.add(3, length);
        let lost = self.target(Tail::Lost);
        let a = &mut self.assembly;
        a.jump(code::JUMP | code::JGT | code::REGISTER, 3, 2, 0, lost);
        a.store_constant(1, 0, mark.cast_signed(), Size::Word);
        a.store(1, 4, KEPT, Size::Word);
        let mut at = 8;
        if shortened {
            a.load(2, STACK, stack::END, Size::Double);
            a.store(1, at, 2, Size::Word);
            at += 4;
        }
        for half in (0..8).step_by(4).filter(|_| ticket) {
            a.load(2, STACK, stack::TICKET + half, Size::Word);
            a.store(1, at, 2, Size::Word);
            at += 4;
        }
        for word in words {
            a.load(2, STACK, stack::ANNOTATIONS + 4 * *word as i32, Size::Word);
            a.store(1, at, 2, Size::Word);
            at += 4;
        }
        a.store_constant(1, at, handover::last(mark, length.cast_unsigned()).cast_signed(), Size::Word);
        self.pass_to_socket(lost);
    }

    /// Passes the frame to the socket of the queue.
    fn pass_to_socket(&mut self, lost: Target) {
        let a = &mut self.assembly;
        a.map(1, MapName::Sockets);
        a.load(2, CONTEXT, context::QUEUE.into(), Size::Word);
        a.constant(3, result::DROP);
        a.call(helper::REDIRECT_MAP);
        self.assembly.jump(code::JUMP | code::JNE, 0, 0, result::REDIRECT, lost);
        self.assembly.push(code::EXIT, 0, 0, 0, 0);
    }
}
