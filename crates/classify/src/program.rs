// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compiled classifier: compilation from patterns, and read access to its steps.

use std::fmt;

use crate::dag::{DROP, Dag, LEAF, MAX_NODES, TooLarge, base, first};
use crate::error::{Fault, PatternError, Warning, WarningKind};
use crate::expr::Expr;
use crate::ip;
use crate::names::Names;
use crate::optimise::optimise;
use crate::pattern;
use crate::run::Runner;

/// The positions from which a program's offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffsetBase {
    /// Offsets count from the start of packet data.
    Data,
    /// Offsets 0 to 255 count from two bytes before the Ethernet header, offsets 256 to 511 from the IP header, and
    /// offsets from 512 on from the transport header.
    Ip,
}

/// The classification of a packet: an output port, or a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Output(pub(crate) u32);

impl Output {
    /// The packet matches no pattern, or a rule drops it.
    pub const DROP: Output = Output(DROP);

    /// The output port; `None` if the packet is dropped.
    #[inline]
    pub fn port(self) -> Option<usize> {
        (self != Output::DROP).then_some(self.0 as usize)
    }

    /// The port as a number; 2147483647 for a drop.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The continuation after one outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Continue at the step with this index, always a later one.
    Step(u32),
    /// End of the program.
    Output(Output),
}

impl Target {
    fn new(raw: u32) -> Target {
        if raw & LEAF != 0 { Target::Output(Output(raw & !LEAF)) } else { Target::Step(raw) }
    }

    pub(crate) fn raw(self) -> u32 {
        match self {
            Target::Step(at) => at,
            Target::Output(out) => out.0 | LEAF,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Step(at) => write!(f, "step {at}"),
            Target::Output(Output::DROP) => f.write_str("[X]"),
            Target::Output(out) => write!(f, "[{}]", out.0),
        }
    }
}

/// One test: does the aligned 4-byte word at `offset`, in network order, equal `value` under `mask`?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset of the word, coded according to the program's [`OffsetBase`].
    pub offset: u32,
    /// The bits to compare.
    pub mask: u32,
    /// The required value of the compared bits; a subset of `mask`.
    pub value: u32,
    /// End of the last byte that must be present, coded like `offset`. If this byte is missing, the outcome is no.
    pub need: u32,
    /// The continuation if the test succeeds.
    pub yes: Target,
    /// The continuation if the test fails.
    pub no: Target,
}

impl Step {
    /// End of the last byte that has bits in the mask, coded like `offset`.
    fn end(&self) -> u32 {
        self.offset + 4 - (self.mask.trailing_zeros() / 8).min(4)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { offset, mask, value, yes, no, .. } = self;
        write!(f, "{offset:3}/{value:08x}%{mask:08x}  yes->{yes}  no->{no}")
    }
}

/// The form of a program, which selects the interpreter loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every packet goes to one output.
    Always(Output),
    /// A single test.
    OneStep,
    /// One word under one mask, looked up in a list of values.
    Values,
    /// Anything else.
    General,
}

/// A tree in execution order: targets come after the steps that refer to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) steps: Vec<Step>,
    pub(crate) root: Target,
}

impl Tree {
    fn new(dag: &Dag, root: u32) -> Tree {
        let order = dag.order(root);
        let mut place = vec![0u32; dag.nodes.len()];
        for (to, &from) in order.iter().enumerate() {
            if let Some(p) = place.get_mut(from as usize) {
                *p = to as u32;
            }
        }
        let target = |raw: u32| Target::new(place.get(raw as usize).copied().unwrap_or(raw));
        let steps = order.iter().filter_map(|&at| dag.get(at)).map(|n| Step {
            offset: n.atom.offset,
            mask: n.atom.mask,
            value: n.atom.value,
            need: n.atom.need,
            yes: target(n.yes),
            no: target(n.no),
        });
        Tree { steps: steps.collect(), root: target(root) }
    }

    /// All outputs at the ends of paths.
    fn outputs(&self) -> impl Iterator<Item = Output> {
        let ends = self.steps.iter().flat_map(|s| [s.yes, s.no]).chain([self.root]);
        ends.filter_map(|t| if let Target::Output(out) = t { Some(out) } else { None })
    }
}

/// A classifier: patterns compiled to a decision tree.
///
/// There are two trees. The *fast* tree assumes that every byte it tests is present, and is used for packets
/// that are long enough. The *checked* tree tests the length first and is used for all other packets. Both are
/// equivalent to trying the patterns in order, where a test on missing bytes is false.
#[derive(Clone, Debug)]
pub struct Program {
    kind: OffsetBase,
    outputs: usize,
    fast: Tree,
    checked: Tree,
    safe_length: u32,
    pub(crate) runner: Runner,
}

impl Program {
    /// Compiles the patterns of `Classifier`, one for each output. A pattern is `-`, which matches every
    /// packet, or a list of clauses `[!]OFFSET/VALUE[%MASK]`, which must all hold.
    ///
    /// # Errors
    /// Every faulty clause of every pattern.
    pub fn from_classifier(patterns: &[&str]) -> Result<(Program, Vec<Warning>), Vec<PatternError>> {
        let mut exprs = Vec::new();
        let mut errors = Vec::new();
        for (i, text) in patterns.iter().enumerate() {
            match pattern::parse(text) {
                Ok(e) => exprs.push(e),
                Err(faults) => errors.extend(faults.into_iter().map(|f| f.in_pattern(i))),
            }
        }
        finish(OffsetBase::Data, patterns, exprs, errors, Vec::new(), None, patterns.len())
    }

    /// Compiles the expressions of `IPClassifier`, one for each output.
    ///
    /// # Errors
    /// The first error of every faulty pattern.
    pub fn from_ip_classifier(
        patterns: &[&str],
        names: &dyn Names,
    ) -> Result<(Program, Vec<Warning>), Vec<PatternError>> {
        let mut exprs = Vec::new();
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for (i, text) in patterns.iter().enumerate() {
            match ip::parse_pattern(text, names) {
                Ok((e, notes)) => {
                    exprs.push(e);
                    warnings.extend(notes.into_iter().map(|n| redundant(i, n)));
                }
                Err(fault) => errors.push(fault.in_pattern(i)),
            }
        }
        finish(OffsetBase::Ip, patterns, exprs, errors, warnings, None, patterns.len())
    }

    /// Compiles the rules of `IPFilter`: `ACTION EXPRESSION`. ACTION is `allow` (output 0), `deny`, `drop` or
    /// an output number. The first matching rule applies.
    ///
    /// # Errors
    /// The first error of every faulty rule.
    pub fn from_ip_filter(
        rules: &[&str],
        names: &dyn Names,
        outputs: usize,
    ) -> Result<(Program, Vec<Warning>), Vec<PatternError>> {
        let mut exprs = Vec::new();
        let mut actions = Vec::new();
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for (i, text) in rules.iter().enumerate() {
            match ip::parse_rule(text, names) {
                Ok(rule) => {
                    exprs.push(rule.expr);
                    warnings.extend(rule.notes.into_iter().map(|n| redundant(i, n)));
                    let action = match rule.port {
                        Some(port) if (port as usize) < outputs => port,
                        Some(port) => {
                            let message = format!("output {port} does not exist, its packets are dropped");
                            let kind = WarningKind::NoSuchOutput;
                            warnings.push(Warning { kind, pattern: i, range: rule.action.clone(), message });
                            DROP
                        }
                        None => DROP,
                    };
                    actions.push(action);
                }
                Err(fault) => errors.push(fault.in_pattern(i)),
            }
        }
        finish(OffsetBase::Ip, rules, exprs, errors, warnings, Some(&actions), outputs)
    }

    /// The positions from which offsets count.
    pub fn kind(&self) -> OffsetBase {
        self.kind
    }

    /// The number of outputs that the program was compiled for.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The form of the program, which selects the interpreter loop.
    pub fn shape(&self) -> Shape {
        self.runner.shape()
    }

    /// The steps for packets of at least [`Program::safe_lengths`]. Targets come after the steps that refer to
    /// them.
    pub fn steps(&self) -> &[Step] {
        &self.fast.steps
    }

    /// The first step of [`Program::steps`], or an output if there are no steps.
    pub fn root(&self) -> Target {
        self.fast.root
    }

    /// The steps for shorter packets. A test whose `need` exceeds the packet fails.
    pub fn checked_steps(&self) -> &[Step] {
        &self.checked.steps
    }

    /// The first step of [`Program::checked_steps`], or an output.
    pub fn checked_root(&self) -> Target {
        self.checked.root
    }

    /// The offset just behind the last byte that [`Program::steps`] compare, coded like [`Step::offset`].
    /// [`Program::program_text`] prints this number.
    pub fn safe_length(&self) -> u32 {
        self.safe_length
    }

    /// For each header (Ethernet header or packet data, IP, transport), the number of bytes that must be
    /// present for [`Program::steps`] to be valid.
    pub fn safe_lengths(&self) -> [u32; 3] {
        needs(self.kind, [&self.fast, &self.checked])
    }

    /// The program as text: one line for each step, the safe length and the alignment offset.
    pub fn program_text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Target::Output(_) = self.fast.root {
            writeln!(f, "all->{}", self.fast.root)?;
        }
        for (i, s) in self.fast.steps.iter().enumerate() {
            writeln!(f, "{i:2} {s}")?;
        }
        write!(f, "safe length {}\nalignment offset 0\n", self.safe_length)
    }
}

/// For each header, the number of bytes that the tests of the trees require.
fn needs(kind: OffsetBase, trees: [&Tree; 2]) -> [u32; 3] {
    let mut needs = [0u32; 3];
    for step in trees.iter().flat_map(|t| &t.steps) {
        let header = base(kind, step.offset);
        let need = step.need.saturating_sub(first(kind, header));
        needs[header] = needs[header].max(need);
    }
    needs
}

/// Returns the number of bytes of each header that must be present. With these bytes, the tests of both trees never
/// lack a byte, and the fast tree can load whole words.
fn loads(kind: OffsetBase, fast: &Tree, checked: &Tree) -> [u32; 3] {
    let mut loads = needs(kind, [fast, checked]);
    for step in &fast.steps {
        let header = base(kind, step.offset);
        loads[header] = loads[header].max((step.offset + 4).saturating_sub(first(kind, header)));
    }
    loads
}

fn redundant(pattern: usize, note: Fault) -> Warning {
    Warning { kind: WarningKind::RedundantRelation, pattern, range: note.range, message: note.message }
}

/// Compiles parsed patterns. `actions` maps patterns to outputs if the mapping is not one to one.
fn finish(
    kind: OffsetBase,
    texts: &[&str],
    exprs: Vec<Expr>,
    errors: Vec<PatternError>,
    mut warnings: Vec<Warning>,
    actions: Option<&[u32]>,
    outputs: usize,
) -> Result<(Program, Vec<Warning>), Vec<PatternError>> {
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut total = 0;
    for (i, e) in exprs.iter().enumerate() {
        total += e.size();
        if total > MAX_NODES {
            return Err(vec![too_large(i, texts)]);
        }
    }
    let last = texts.len().saturating_sub(1);
    let compiled = |actions: Option<&[u32]>, all_present: bool| compile(kind, &exprs, actions, all_present);
    let refuse = |_: TooLarge| vec![too_large(last, texts)];
    let by_pattern = compiled(None, false).map_err(refuse)?;
    let mut reached = vec![false; texts.len()];
    for out in by_pattern.outputs() {
        if let Some(r) = reached.get_mut(out.0 as usize) {
            *r = true;
        }
    }
    for (i, text) in texts.iter().enumerate() {
        if reached.get(i) == Some(&false) {
            let (kind, what) = match actions {
                None => (WarningKind::OutputMatchesNothing, "output"),
                Some(_) => (WarningKind::RuleMatchesNothing, "pattern"),
            };
            let message = format!("{what} {i} matches no packets");
            warnings.push(Warning { kind, pattern: i, range: 0..text.len(), message });
        }
    }
    let fast = compiled(actions, true).map_err(refuse)?;
    let checked = match actions {
        None => by_pattern,
        Some(_) => compiled(actions, false).map_err(refuse)?,
    };
    let safe_length = fast.steps.iter().map(Step::end).max().unwrap_or(0);
    let runner = Runner::new(kind, &fast, loads(kind, &fast, &checked));
    Ok((Program { kind, outputs, fast, checked, safe_length, runner }, warnings))
}

fn compile(
    kind: OffsetBase,
    exprs: &[Expr],
    actions: Option<&[u32]>,
    all_present: bool,
) -> Result<Tree, TooLarge> {
    let mut dag = Dag::new(kind);
    let mut root = LEAF | DROP;
    for (i, e) in exprs.iter().enumerate().rev() {
        let output = actions.map_or(i as u32, |a| a.get(i).copied().unwrap_or(DROP));
        root = dag.compile(e, LEAF | output, root)?;
    }
    let (dag, root) = optimise(&dag, root, all_present)?;
    Ok(Tree::new(&dag, root))
}

fn too_large(pattern: usize, texts: &[&str]) -> PatternError {
    let end = texts.get(pattern).map_or(0, |t| t.len());
    Fault::new(0..end, format!("the patterns up to here need more than {MAX_NODES} tests"))
        .expected("fewer or simpler patterns")
        .in_pattern(pattern)
}
