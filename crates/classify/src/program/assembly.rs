// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs as text that can be read again: one line for each step of the checked tree.
//!
//! The first line is `data OUTPUTS` or `ip OUTPUTS`: the [`OffsetBase`] and the number of outputs. Then comes one line for
//! each step, `OFFSET/VALUE%MASK END YES NO`, with the fields of [`Step`]; END is `need`. A target is `[N]` for output N, `[X]` for a
//! drop, or the number of a later step, from 0. A program without steps has one target instead. The fast tree is not
//! stored, because it follows from the checked one.

use super::{OffsetBase, Output, Program, Step, Target, Tree};
use crate::dag::{Dag, LEAF, MAX_NODES, Node, TooLarge, base, first};
use crate::error::{AssemblyError, Fault};
use crate::expr::{Atom, NETWORK, TRANSPORT};
use crate::optimise::optimise;

/// Limit on offsets. Every word of a pattern is below it, and the arithmetic of the interpreter cannot overflow.
const MAX_OFFSET: u32 = 1 << 30;
/// Limit on the number of outputs.
const MAX_OUTPUTS: u32 = 1 << 20;

impl Program {
    /// Returns the program as text, in lines. [`Program::assemble`] reads them.
    pub fn disassemble(&self) -> Vec<String> {
        let kind = match self.kind {
            OffsetBase::Data => "data",
            OffsetBase::Ip => "ip",
        };
        let mut lines = vec![format!("{kind} {}", self.outputs)];
        if self.checked.steps.is_empty() {
            lines.push(written(self.checked.root));
        }
        lines.extend(self.checked.steps.iter().map(|s| {
            let Step { offset, value, mask, need, .. } = s;
            format!("{offset}/{value:08x}%{mask:08x} {need} {} {}", written(s.yes), written(s.no))
        }));
        lines
    }

    /// Reads the lines that [`Program::disassemble`] returns, and makes the fast tree again. The text may come from
    /// anywhere: a program that is returned reads no byte outside its packet, and ends after at most as many steps as there
    /// are lines.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn assemble<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Program, AssemblyError> {
        let mut lines = lines.into_iter().enumerate();
        let (at, head) = lines.next().unwrap_or((0, ""));
        let (kind, outputs) = header(head).map_err(|f| f.in_line(at))?;
        let mut steps: Vec<Step> = Vec::new();
        let mut root = None;
        let mut end = at + 1;
        for (at, line) in lines {
            end = at + 1;
            if steps.is_empty() && root.is_none() && line.trim_start().starts_with('[') {
                root = Some(lone_target(line, outputs).map_err(|f| f.in_line(at))?);
                continue;
            }
            if root.is_some() || steps.len() >= MAX_NODES {
                let message = match root {
                    Some(_) => "a line after the only target".to_string(),
                    None => format!("more than {MAX_NODES} steps"),
                };
                return Err(Fault::new(0..line.len(), message).in_line(at));
            }
            steps.push(step(line, kind, outputs, steps.len()).map_err(|f| f.in_line(at))?);
        }
        check_targets(&steps).map_err(|(step, message)| Fault::new(0..0, message).in_line(at + 1 + step))?;
        let root = match (root, steps.is_empty()) {
            (Some(root), _) => root,
            (None, false) => Target::Step(0),
            (None, true) => {
                let fault = Fault::new(0..0, "the program has neither steps nor a target");
                return Err(fault.expected("a step, or '[N]' or '[X]'").in_line(end));
            }
        };
        let mut dag = Dag::new(kind);
        let too_large = |_| Fault::new(0..0, format!("more than {MAX_NODES} steps")).in_line(end);
        let root =
            insert(&mut dag, &Tree { steps, root }, |out| Target::Output(out).raw()).map_err(too_large)?;
        let (fast, fast_root) = optimise(&dag, root, true).map_err(too_large)?;
        let (fast, checked) = (Tree::new(&fast, fast_root), Tree::new(&dag, root));
        Ok(Program::from_trees(kind, outputs as usize, fast, checked))
    }
}

/// Adds the steps of a tree to `dag`, and returns the node of its root. `leaf` returns the node or leaf that takes the place of an
/// output.
pub(super) fn insert(dag: &mut Dag, tree: &Tree, leaf: impl Fn(Output) -> u32) -> Result<u32, TooLarge> {
    let mut placed = vec![LEAF; tree.steps.len()];
    let find = |placed: &[u32], target: Target| match target {
        Target::Output(out) => leaf(out),
        Target::Step(at) => placed.get(at as usize).copied().unwrap_or(Target::Output(Output::DROP).raw()),
    };
    // INVARIANT: targets are later steps, so they have their nodes already.
    for (at, s) in tree.steps.iter().enumerate().rev() {
        let atom = Atom { offset: s.offset, mask: s.mask, value: s.value, need: s.need };
        let node = Node { atom, yes: find(&placed, s.yes), no: find(&placed, s.no) };
        let node = dag.node(node)?;
        if let Some(p) = placed.get_mut(at) {
            *p = node;
        }
    }
    Ok(find(&placed, tree.root))
}

/// Returns a target as it is written.
fn written(target: Target) -> String {
    match target {
        Target::Step(at) => at.to_string(),
        output => output.to_string(),
    }
}

/// The words of a line, with their offsets.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = line.as_ptr() as usize;
    line.split_ascii_whitespace().map(move |w| (w.as_ptr() as usize - base, w))
}

/// Takes exactly `N` words from a line.
fn exactly<'a, const N: usize>(line: &'a str, form: &str) -> Result<[(usize, &'a str); N], Fault> {
    let all: Vec<_> = words(line).take(N + 1).collect();
    let count = all.len();
    <[_; N]>::try_from(all).map_err(|_| {
        let what = if count > N { "too many words" } else { "too few words" };
        Fault::new(0..line.len(), what).expected(form)
    })
}

fn header(line: &str) -> Result<(OffsetBase, u32), Fault> {
    let [(at, kind), (from, count)] = exactly(line, "'data OUTPUTS' or 'ip OUTPUTS'")?;
    let kind = match kind {
        "data" => OffsetBase::Data,
        "ip" => OffsetBase::Ip,
        _ => return Err(Fault::new(at..at + kind.len(), "bad kind of program").expected("'data' or 'ip'")),
    };
    Ok((kind, decimal(from, count, "number of outputs", MAX_OUTPUTS)?))
}

fn lone_target(line: &str, outputs: u32) -> Result<Target, Fault> {
    let [(at, word)] = exactly(line, "'[N]' or '[X]'")?;
    target(at, word, outputs, usize::MAX)
}

/// Parses one step. `at` is its number.
fn step(line: &str, kind: OffsetBase, outputs: u32, at: usize) -> Result<Step, Fault> {
    let form = "'OFFSET/VALUE%MASK END YES NO'";
    let [(start, test), (need_at, need_word), yes, no] = exactly(line, form)?;
    let whole = start..start + test.len();
    let (offset, rest) =
        test.split_once('/').ok_or_else(|| Fault::new(whole.clone(), "no '/'").expected(form))?;
    let (value, mask) =
        rest.split_once('%').ok_or_else(|| Fault::new(whole.clone(), "no '%'").expected(form))?;
    let value_at = start + offset.len() + 1;
    let mask_at = value_at + value.len() + 1;
    let offset = decimal(start, offset, "offset", MAX_OFFSET)?;
    let (value, mask) = (hex(value_at, value, "value")?, hex(mask_at, mask, "mask")?);
    if value & !mask != 0 {
        return Err(Fault::new(whole, "the value has bits outside the mask"));
    }
    let need = decimal(need_at, need_word, "end", MAX_OFFSET + 4)?;
    let need_range = need_at..need_at + need_word.len();
    let step = Step {
        offset,
        mask,
        value,
        need,
        yes: target(yes.0, yes.1, outputs, at)?,
        no: target(no.0, no.1, outputs, at)?,
    };
    let most = limit(kind, offset);
    let least = step.end().max(offset + 1).max(first(kind, base(kind, offset)));
    let range = least..=(offset + 4).min(most);
    if !range.contains(&need) {
        let (least, most) = (range.start(), range.end());
        let message =
            if least > most { "the word lies in two headers" } else { "the end does not fit the word" };
        let expected = format!("{least} to {most}");
        let fault = Fault::new(need_range, message);
        return Err(if least > most { fault } else { fault.expected(expected) });
    }
    Ok(step)
}

/// The end of the header that contains an offset.
fn limit(kind: OffsetBase, offset: u32) -> u32 {
    match (kind, base(kind, offset)) {
        (OffsetBase::Ip, 0) => NETWORK,
        (OffsetBase::Ip, 1) => TRANSPORT,
        _ => u32::MAX,
    }
}

/// Parses a target of step `at`.
fn target(start: usize, word: &str, outputs: u32, at: usize) -> Result<Target, Fault> {
    let fault = |message: &str| Fault::new(start..start + word.len(), message);
    if word == "[X]" {
        return Ok(Target::Output(Output::DROP));
    }
    if let Some(number) = word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
        let out = decimal(start + 1, number, "output", LEAF - 1)?;
        if out >= outputs {
            return Err(fault("no such output").expected(format!("less than {outputs}")));
        }
        return Ok(Target::Output(Output(out)));
    }
    let next = decimal(start, word, "target", MAX_NODES as u32)?;
    // Steps lead to later steps only, so no packet can go round in a cycle.
    if next as usize <= at {
        return Err(fault("a step leads to a later step").expected(format!("more than {at}")));
    }
    Ok(Target::Step(next))
}

/// Checks that every target is a step that exists, and that every step but the first is the target of another. The error is the
/// number of a step, and what is wrong with it.
fn check_targets(steps: &[Step]) -> Result<(), (usize, String)> {
    let mut reached = vec![false; steps.len()];
    for (at, s) in steps.iter().enumerate() {
        for target in [s.yes, s.no] {
            let Target::Step(next) = target else { continue };
            match reached.get_mut(next as usize) {
                Some(r) => *r = true,
                None => return Err((at, format!("there is no step {next}"))),
            }
        }
    }
    match reached.iter().skip(1).position(|r| !r) {
        Some(at) => Err((at + 1, format!("no step leads to step {}", at + 1))),
        None => Ok(()),
    }
}

fn decimal(start: usize, word: &str, what: &str, most: u32) -> Result<u32, Fault> {
    let fault = |message: String| Fault::new(start..start + word.len(), message);
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
        return Err(fault(format!("bad {what}")).expected("a decimal number"));
    }
    match word.parse::<u32>() {
        Ok(n) if n <= most => Ok(n),
        _ => Err(fault(format!("{what} too large")).expected(format!("at most {most}"))),
    }
}

fn hex(start: usize, word: &str, what: &str) -> Result<u32, Fault> {
    let digits = word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u32::from_str_radix(word, 16).ok().filter(|_| digits);
    number.ok_or_else(|| {
        Fault::new(start..start + word.len(), format!("bad {what}")).expected("eight hexadecimal digits")
    })
}
