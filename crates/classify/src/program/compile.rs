// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles patterns to a [`Program`]: parses them, builds and optimises the decision trees, and warns of patterns
//! that match no packets.

use super::assembly::insert;
use super::{OffsetBase, Output, Program, Step, Target, Tree, needs};
use crate::dag::{DROP, Dag, LEAF, MAX_NODES, TooLarge, base, first};
use crate::error::{Fault, PatternError, Warning, WarningKind};
use crate::expr::Expr;
use crate::ip;
use crate::merge::{Parts, Rules};
use crate::names::Names;
use crate::optimise::optimise;
use crate::pattern;
use crate::run::Runner;

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
    let job = Job { kind, exprs: &exprs, actions, outputs };
    let compiled = job.program().map_err(|_| vec![too_large(texts.len().saturating_sub(1), texts)])?;
    for (i, text) in texts.iter().enumerate() {
        if compiled.reached.get(i) == Some(&false) {
            let (kind, what) = match actions {
                None => (WarningKind::OutputMatchesNothing, "output"),
                Some(_) => (WarningKind::RuleMatchesNothing, "pattern"),
            };
            let message = format!("{what} {i} matches no packets");
            warnings.push(Warning { kind, pattern: i, range: 0..text.len(), message });
        }
    }
    Ok((compiled.program, warnings))
}

impl Program {
    /// Makes the program of two equivalent trees.
    pub(crate) fn from_trees(kind: OffsetBase, outputs: usize, fast: Tree, checked: Tree) -> Program {
        let safe_length = fast.steps.iter().map(Step::end).max().unwrap_or(0);
        let runner = Runner::new(kind, &fast, loads(kind, &fast, &checked));
        Program { kind, outputs, fast, checked, safe_length, runner }
    }
}

/// Patterns to compile, and their outputs if these are not one to one.
struct Job<'a> {
    kind: OffsetBase,
    exprs: &'a [Expr],
    actions: Option<&'a [u32]>,
    outputs: usize,
}

/// A program, and for each pattern, whether packets reach its output.
struct Compiled {
    program: Program,
    reached: Vec<bool>,
}

impl Job<'_> {
    /// Compiles the patterns. Long lists are divided into parts, unless the interpreter searches them as they are.
    fn program(&self) -> Result<Compiled, TooLarge> {
        let Some(rules) = Rules::new(self.kind, self.exprs) else { return self.in_order() };
        if rules.vary_in_one_word() {
            let compiled = self.in_order()?;
            if compiled.program.is_well_searched() {
                return Ok(compiled);
            }
        }
        match Parts::new(rules).and_then(|parts| self.in_parts(&parts)) {
            Some(compiled) => Ok(compiled),
            None => self.in_order(),
        }
    }

    /// The program in which each pattern follows the one before.
    fn in_order(&self) -> Result<Compiled, TooLarge> {
        let tree = |actions, all_present| compile(self.kind, self.exprs, actions, all_present);
        let by_pattern = tree(None, false)?;
        let reached = self.reached(&by_pattern);
        let checked = match self.actions {
            None => by_pattern,
            Some(_) => tree(self.actions, false)?,
        };
        let fast = tree(self.actions, true)?;
        Ok(Compiled { program: Program::from_trees(self.kind, self.outputs, fast, checked), reached })
    }

    /// The program that finds the part of the list that may match first. None if it is too large.
    fn in_parts(&self, parts: &Parts<'_>) -> Option<Compiled> {
        let (dag, root) = parts.tree(None, false)?;
        let by_pattern = Tree::new(&dag, root);
        let reached = self.reached(&by_pattern);
        let checked = match self.actions {
            None => by_pattern,
            Some(actions) => {
                let mut dag = Dag::new(self.kind);
                let action = |out: Output| LEAF | actions.get(out.0 as usize).copied().unwrap_or(DROP);
                let root = insert(&mut dag, &by_pattern, action).ok()?;
                Tree::new(&dag, root)
            }
        };
        let (dag, root) = parts.tree(self.actions, true)?;
        let program = Program::from_trees(self.kind, self.outputs, Tree::new(&dag, root), checked);
        Some(Compiled { program, reached })
    }

    /// For each pattern, whether `tree` leads to it.
    fn reached(&self, tree: &Tree) -> Vec<bool> {
        let mut reached = vec![false; self.exprs.len()];
        for out in tree.outputs() {
            if let Some(r) = reached.get_mut(out.0 as usize) {
                *r = true;
            }
        }
        reached
    }
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

impl Tree {
    pub(crate) fn new(dag: &Dag, root: u32) -> Tree {
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
