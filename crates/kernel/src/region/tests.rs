// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]

use super::check::check;
use super::*;
use crate::code::{Lowered, stack};
use crate::step::{Arithmetic, Base, Label, Operand, Size, Test, Value};

/// The state of a packet of which nothing is known.
fn unknown() -> State {
    State { annotations: [None; 48], ..State::received() }
}

const FRAME: Base = Base::Frame;
const WORD: Size = Size::Word;
const ONE: Operand = Operand::Constant(1);

fn load(base: Base, offset: i32, size: Size) -> Step {
    Step::Load { to: Value(0), base, offset, size }
}
fn store(base: Base, offset: i32, size: Size) -> Step {
    Step::Store { base, offset, size, from: ONE }
}
fn arithmetic(operation: Arithmetic, right: Operand) -> Step {
    Step::Arithmetic { operation, to: Value(0), left: Value(0), right }
}
fn next(state: State) -> Step {
    Step::Exit(Exit::Next(0, state))
}

/// Checks steps for packets of which 4 bytes are present.
fn checked(steps: &[Step]) -> Result<(), String> {
    check(steps, &State { present: 4, ..unknown() }, 2).map_err(|e| e.0)
}

#[test]
fn code_that_accesses_other_memory_is_refused() {
    let (stop, to) = (Step::Exit(Exit::Drop), Label(0));
    let annotation = |at: i32, size| load(Base::Stack, stack::ANNOTATIONS + at, size);
    let present = |end| Step::Present { end, otherwise: to };
    let state = |data, present, shortened| State { data, present, shortened, ..unknown() };
    let late = State { annotations: [Some(1); 48], ..State::received() };
    for (steps, want) in [
        (vec![load(FRAME, 0, WORD)], None),
        (vec![store(FRAME, 2, Size::Half)], None),
        (vec![load(FRAME, 1, WORD)], Some("not be present")),
        (vec![store(FRAME, 4, Size::Byte)], Some("not be present")),
        (vec![load(FRAME, -1, Size::Byte)], Some("not be present")),
        (vec![load(FRAME, i32::MAX, WORD)], Some("not be present")),
        (vec![present(5), load(FRAME, 1, WORD), stop.clone(), Step::Bind(to)], None),
        // Where the test has failed, the byte may be missing.
        (vec![present(5), stop.clone(), Step::Bind(to), load(FRAME, 1, WORD)], Some("not be present")),
        (vec![Step::Jump(to), Step::Bind(to), load(FRAME, 0, WORD)], None),
        (vec![annotation(20, WORD)], None),
        (vec![annotation(21, WORD)], Some("annotations")),
        (vec![store(Base::Stack, stack::ANNOTATIONS - 1, Size::Byte)], Some("annotations")),
        (vec![load(Base::Stack, stack::KEY, WORD)], Some("annotations")),
        (vec![load(Base::Stack, stack::END, Size::Double)], Some("not shortened")),
        (
            vec![store(Base::Stack, stack::END, Size::Double), load(Base::Stack, stack::END, Size::Double)],
            None,
        ),
        (vec![store(Base::Stack, stack::END, WORD)], Some("a part")),
        (vec![load(Base::Entry(Value(0)), 0, WORD)], Some("table")),
        (vec![arithmetic(Arithmetic::Divide, ONE)], None),
        (vec![arithmetic(Arithmetic::Divide, Operand::Constant(0))], Some("divides")),
        (vec![arithmetic(Arithmetic::Remainder, Operand::Value(Value(1)))], Some("divides")),
        (vec![arithmetic(Arithmetic::ShiftLeft, Operand::Constant(64))], Some("shifts")),
        (vec![Step::Random { to: Value(0) }], Some("random")),
        (vec![Step::MoveStart { by: -4, otherwise: to }], Some("headroom")),
        (vec![next(state(4, 4, false))], None),
        (vec![next(state(5, 4, false))], Some("more than is known")),
        (vec![next(state(0, 5, false))], Some("more than is known")),
        (vec![next(state(0, 4, true))], Some("more than is known")),
        (vec![next(state(-1, 4, false))], Some("before the packet")),
        (vec![next(late)], Some("annotations")),
        (vec![Step::Bind(to), Step::Jump(to)], Some("backwards")),
        (vec![Step::Bind(to), Step::Bind(to)], Some("twice")),
        (vec![Step::Count { counter: 1, by: ONE }], None),
        (vec![Step::Count { counter: 2, by: ONE }], Some("counts")),
        (vec![Step::Count { counter: 1, by: ONE }, load(FRAME, 0, WORD)], Some("counts")),
        (vec![Step::Jump(to), load(FRAME, 0, WORD)], Some("no packet")),
    ] {
        let ends = |s: &Step| matches!(s, Step::Exit(_));
        let mut all = steps.clone();
        if !all.last().is_some_and(ends) {
            all.push(stop.clone());
        }
        let got = checked(&all);
        match want {
            None => assert_eq!(got, Ok(()), "{steps:?}"),
            Some(want) => assert!(got.as_ref().is_err_and(|e| e.contains(want)), "{steps:?}: {got:?}"),
        }
    }
    for open in [vec![], vec![load(FRAME, 0, WORD)], vec![Step::Jump(to)], vec![present(9), stop]] {
        assert_eq!(checked(&open), Err("a path does not end".to_string()), "{open:?}");
    }
}

/// Elements by number: each is a list of outputs, and element `n` of `refused` cannot be compiled. An element tests whether the first byte
/// is its own number, and if not, continues at its last output.
struct Graph {
    outputs: Vec<Vec<u32>>,
    refused: Vec<u32>,
}

impl Network for Graph {
    fn lower(&self, element: u32, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.refused.contains(&element) {
            return Err("refused".into());
        }
        let (outputs, short) = (self.outputs(element), code.label());
        code.need(1, short);
        for output in 0..outputs - 1 {
            let other = code.label();
            let first = code.load(0, Size::Byte);
            code.branch(first, Test::Differ, i64::from(element) + output as i64, other);
            code.next(output);
            code.bind(other);
        }
        code.next(outputs - 1);
        code.bind(short);
        code.up();
        Ok(())
    }
    fn outputs(&self, element: u32) -> usize {
        self.outputs.get(element as usize).map_or(0, Vec::len)
    }
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)> {
        self.outputs.get(element as usize)?.get(output as usize).map(|e| (*e, 0))
    }
    fn is_passable(&self, element: u32, output: u32) -> bool {
        // Outputs that lead back are not passed.
        self.next(element, output).is_some_and(|to| to.0 > element)
    }
}

const REASONS: Reasons = Reasons { no_port: 1, no_room: 2 };

fn region(outputs: &[&[u32]], refused: &[u32]) -> Result<Region, Refused> {
    let outputs = outputs.iter().map(|o| o.to_vec()).collect();
    let start = Point { element: 0, input: 0, state: unknown() };
    Region::compile(&Graph { outputs, refused: refused.to_vec() }, &start, REASONS)
}

#[test]
fn a_region_ends_where_elements_are_refused() {
    // 0 leads to 1 and 2, both to 3, and 3 to 4, which is refused, and back to 0.
    let region = region(&[&[1, 2], &[3], &[3], &[4, 0], &[3]], &[4]).unwrap();
    let elements: Vec<u32> = region.fragments().iter().map(Fragment::element).collect();
    assert_eq!(elements, [0, 1, 3, 2]);
    let ends: Vec<_> = region.ends().iter().map(|e| (e.to.as_ref().map(|p| p.element), e.from)).collect();
    // Packets that are too short go up where it was tested first.
    assert_eq!(ends, [(Some(0), None), (Some(4), Some((3, 0))), (Some(0), Some((3, 1))), (Some(0), None)]);
    assert!(region.ends().iter().flat_map(|e| &e.to).skip(1).all(|p| p.state.present == 0));
}

#[test]
fn the_size_of_a_region_has_limits() {
    assert!(region(&[&[1], &[2]], &[0]).is_err());
    let long: Vec<Vec<u32>> = (0..1000).map(|e| vec![e + 1]).collect();
    let long: Vec<&[u32]> = long.iter().map(Vec::as_slice).collect();
    let region = region(&long, &[]).unwrap();
    assert_eq!(region.fragments().len(), DEPTH);
    assert!(region.ends().iter().any(|e| e.from == Some((DEPTH as u32 - 1, 0))));
}
