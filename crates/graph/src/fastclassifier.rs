// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the classifiers of a configuration by classes that hold their decision trees, and combines adjacent classifiers
//! ("Programming language optimizations for modular router configurations", ASPLOS 2002, section 4).
//!
//! The result treats packets as before: the same packets leave on the same connections, in the same order.

mod restore;

use crate::Graph;
use crate::undead::named;
use castanet_classify::definitions::{Definitions, PREFIX};
use castanet_classify::{Exit, Part, Program};
use castanet_lang::{Connection, Element, Flat, PortRef};
pub use restore::restore;
use std::collections::{HashMap, HashSet, VecDeque};

/// The class that takes a decision tree as its arguments.
const CLASS: &str = "FastClassifier";
/// Limit on the number of steps of classifiers that are combined. Combining more would save little, and take long.
const MOST_STEPS: usize = 4096;

/// For each element, its decision tree, or why it has none. None if the element is not a classifier.
pub type Trees = Vec<Option<Result<Program, String>>>;

/// The settings of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether adjacent classifiers are combined.
    pub combine: bool,
    /// Whether a class is made for each tree. Otherwise, trees become arguments of the class `FastClassifier`.
    pub classes: bool,
}

/// A classifier that was replaced.
#[derive(Clone, Debug)]
pub struct Made {
    /// The element before: `name :: Class`.
    pub element: String,
    /// The elements that were combined with it.
    pub merged: Vec<String>,
    /// The class of the element now.
    pub class: String,
    /// The decision tree.
    pub program: Program,
}

/// The result of [`fastclassifier`].
#[derive(Clone, Debug, Default)]
pub struct Fast {
    /// The configuration.
    pub flat: Flat,
    /// The classes that the configuration uses, for its archive.
    pub definitions: Definitions,
    /// The classifiers that were replaced, in element order.
    pub made: Vec<Made>,
    /// The classifiers that stay, and why.
    pub kept: Vec<(String, String)>,
}

/// Replaces the classifiers of a configuration without errors. `trees` are the trees of its elements, and `existing` the
/// definitions of its archive. A classifier whose name occurs in another element's configuration string stays.
pub fn fastclassifier(graph: &Graph, trees: &Trees, existing: Definitions, options: Options) -> Fast {
    let mut fast = Fast { definitions: existing, ..Fast::default() };
    let named = named(&graph.flat);
    let mut programs: Vec<Option<&Program>> = vec![None; graph.len()];
    for (e, tree) in trees.iter().enumerate() {
        let why = match tree {
            None => continue,
            Some(Err(why)) => why.clone(),
            Some(Ok(_)) if named.get(e).copied().unwrap_or(true) => {
                "its name occurs in a configuration string".to_string()
            }
            Some(Ok(program)) => {
                if let Some(p) = programs.get_mut(e) {
                    *p = Some(program);
                }
                continue;
            }
        };
        fast.kept.push((graph.declaration(e), why));
    }
    let groups = Groups::new(graph, programs, options.combine).find();
    let mut names = ClassNames::new(&graph.flat, &fast.definitions);
    let mut heads: HashMap<usize, Element> = HashMap::new();
    for group in &groups {
        let (Some(&head), Some(program)) = (group.parts.first(), &group.program) else { continue };
        let Some(element) = graph.element(head) else { continue };
        let (class, config) = if options.classes {
            (names.of(&element.name, program, &mut fast.definitions), String::new())
        } else {
            (CLASS.to_string(), program.disassemble().join(", "))
        };
        let others = || group.parts.iter().skip(1);
        for &e in others() {
            fast.definitions.merged.insert(graph.name(e).to_string(), element.name.clone());
        }
        fast.made.push(Made {
            element: element.declaration(),
            merged: others().map(|&e| graph.declaration(e)).collect(),
            class: class.clone(),
            program: program.clone(),
        });
        heads.insert(head, replaced(element, class, config));
    }
    fast.flat = rewritten(graph, &groups, &heads);
    fast
}

/// Returns an element with another class and configuration string.
fn replaced(element: &Element, class: String, config: String) -> Element {
    let class = class.into();
    let mut end = element.span;
    end.start = end.end;
    Element { class, config, config_span: end, config_map: Vec::new(), ..element.clone() }
}

/// Returns the configuration with the groups' first elements replaced by `heads`, and without their other elements.
fn rewritten(graph: &Graph, groups: &[Group], heads: &HashMap<usize, Element>) -> Flat {
    let gone: HashSet<usize> = groups.iter().flat_map(|g| g.parts.iter().skip(1).copied()).collect();
    let mut flat = Flat { elements: Vec::new(), connections: Vec::new(), ..graph.flat.clone() };
    let mut place = HashMap::new();
    for (e, element) in graph.flat.elements.iter().enumerate().filter(|(e, _)| !gone.contains(e)) {
        place.insert(e, flat.elements.len());
        flat.elements.push(heads.get(&e).unwrap_or(element).clone());
    }
    let mut outputs: HashMap<PortRef, PortRef> = HashMap::new();
    for group in groups {
        let Some(&element) = group.parts.first() else { continue };
        let now = (0..).map(|port| PortRef { element, port });
        outputs.extend(group.outputs.iter().copied().zip(now));
    }
    for c in graph.flat.connections.iter().filter(|c| !gone.contains(&c.to.element)) {
        let from = outputs.get(&c.from).copied().unwrap_or(c.from);
        if let (Some(&a), Some(&b)) = (place.get(&from.element), place.get(&c.to.element)) {
            let (from, to) = (PortRef { element: a, ..from }, PortRef { element: b, ..c.to });
            flat.connections.push(Connection { from, to, span: c.span });
        }
    }
    flat
}

/// Classifiers that become one element: the first has the name, and the others follow its outputs.
struct Group {
    parts: Vec<usize>,
    /// For each output of the new element, the output of a part that it was.
    outputs: Vec<PortRef>,
    program: Option<Program>,
}

/// The search for classifiers that become one element.
struct Groups<'a> {
    graph: &'a Graph,
    /// By element: the program, if the element is to be replaced.
    programs: Vec<Option<&'a Program>>,
    combine: bool,
    taken: Vec<bool>,
}

impl<'a> Groups<'a> {
    fn new(graph: &'a Graph, programs: Vec<Option<&'a Program>>, combine: bool) -> Groups<'a> {
        Groups { graph, programs, combine, taken: vec![false; graph.len()] }
    }

    fn program(&self, e: usize) -> Option<&'a Program> {
        self.programs.get(e).copied().flatten()
    }

    /// The classifier that can be combined with the one before it: it follows the output `from`, and nothing else leads to it.
    /// So the connection closes no cycle that packets can enter, and packets that go round are counted as before.
    fn next(&self, from: PortRef) -> Option<usize> {
        let &[to] = self.graph.downstream(from) else { return None };
        let alone = self.graph.upstream(to).len() == 1 && self.graph.inputs(to.element) == 1;
        let alike = self.program(from.element)?.kind() == self.program(to.element)?.kind();
        (self.combine && alone && alike).then_some(to.element)
    }

    /// Returns all groups, in the order of their first elements.
    fn find(mut self) -> Vec<Group> {
        let mut followers = vec![false; self.graph.len()];
        for e in 0..self.graph.len() {
            for port in 0..self.graph.outputs(e) {
                let next = self.next(PortRef { element: e, port });
                if let Some(f) = next.and_then(|next| followers.get_mut(next)) {
                    *f = true;
                }
            }
        }
        // An element that follows another one begins a group only if it is in no group in the end.
        let all = || (0..self.graph.len()).filter(|&e| self.program(e).is_some());
        let is_follower = |e: &usize| followers.get(*e).copied().unwrap_or(false);
        let mut heads: VecDeque<usize> = all().filter(|e| !is_follower(e)).collect();
        heads.extend(all().filter(is_follower));
        let mut groups = Vec::new();
        while let Some(head) = heads.pop_front() {
            if self.take(head) {
                let (group, cut) = self.group(head);
                // The rest of a group that has become too large begins another one.
                cut.into_iter().rev().for_each(|e| heads.push_front(e));
                groups.extend(self.joined(group));
            }
        }
        groups.sort_by_key(|g| g.parts.first().copied());
        groups
    }

    /// Marks an element as part of a group. Returns false if it is in a group already.
    fn take(&mut self, e: usize) -> bool {
        self.taken.get_mut(e).is_some_and(|t| !std::mem::replace(t, true))
    }

    /// Returns the group that begins at `head`, with what follows each output of its parts, and the elements that are left out
    /// because the group would become too large. The outputs are in the order in which the run loop follows them: those of a
    /// part are in the place of the output that led to it.
    fn group(&mut self, head: usize) -> ((Group, Vec<Vec<Exit>>), Vec<usize>) {
        let steps = |this: &Self, e: usize| this.program(e).map_or(0, |p| p.checked_steps().len());
        let mut group = Group { parts: vec![head], outputs: Vec::new(), program: None };
        let (mut exits, mut cut) = (vec![Vec::new()], Vec::new());
        let mut total = steps(self, head);
        // The parts on the way to the present output, each with its next output. This stack replaces recursion.
        let mut open = vec![(0, 0)];
        while let Some((part, port)) = open.last_mut() {
            let (at, from) = (*part, PortRef { element: group.parts[*part], port: *port });
            *port += 1;
            if from.port >= self.graph.outputs(from.element) {
                open.pop();
                continue;
            }
            let next = self.next(from).filter(|&next| {
                let fits = total + steps(self, next) <= MOST_STEPS;
                if !fits {
                    cut.push(next);
                }
                fits && self.take(next)
            });
            let exit = match next {
                Some(next) => {
                    total += steps(self, next);
                    group.parts.push(next);
                    exits.push(Vec::new());
                    open.push((exits.len() - 1, 0));
                    Exit::Part(exits.len() - 1)
                }
                None => {
                    group.outputs.push(from);
                    Exit::Output(u32::try_from(group.outputs.len() - 1).unwrap_or(u32::MAX))
                }
            };
            exits[at].push(exit);
        }
        ((group, exits), cut)
    }

    /// Makes the program of a group. If the programs cannot be joined, each part becomes a group of its own.
    fn joined(&self, (group, exits): (Group, Vec<Vec<Exit>>)) -> Vec<Group> {
        let program = |e: usize| self.program(e);
        let parts = group.parts.iter().zip(exits);
        let parts: Option<Vec<Part<'_>>> =
            parts.map(|(&e, exits)| Some(Part { program: program(e)?, exits })).collect();
        if let Some([_, _, ..]) = parts.as_deref()
            && let Some(program) = parts.and_then(|p| Program::join(&p, group.outputs.len()))
        {
            return vec![Group { program: Some(program), ..group }];
        }
        let alone = |e: usize| Group {
            parts: vec![e],
            outputs: (0..self.graph.outputs(e)).map(|port| PortRef { element: e, port }).collect(),
            program: program(e).cloned(),
        };
        group.parts.into_iter().map(alone).collect()
    }
}

/// The names of the new classes. Equal programs have one class.
struct ClassNames {
    by_text: HashMap<String, String>,
    taken: HashSet<String>,
    /// How many names have been tried with each beginning.
    tried: HashMap<String, usize>,
}

impl ClassNames {
    fn new(flat: &Flat, existing: &Definitions) -> ClassNames {
        let classes = flat.elements.iter().map(|e| e.class.to_string());
        let by_text = existing.classes.iter().map(|(name, p)| (p.disassemble().join("\n"), name.clone()));
        ClassNames {
            by_text: by_text.collect(),
            taken: classes.chain(existing.classes.keys().cloned()).collect(),
            tried: HashMap::new(),
        }
    }

    /// Returns the class for the program of an element, and defines it if it is new.
    fn of(&mut self, element: &str, program: &Program, definitions: &mut Definitions) -> String {
        let text = program.disassemble().join("\n");
        if let Some(class) = self.by_text.get(&text) {
            return class.clone();
        }
        let first = format!("{PREFIX}{}", element.replace('/', "_"));
        let tried = self.tried.entry(first.clone()).or_insert(0);
        let class = loop {
            *tried += 1;
            let name = if *tried == 1 { first.clone() } else { format!("{first}@{tried}") };
            if self.taken.insert(name.clone()) {
                break name;
            }
        };
        definitions.classes.insert(class.clone(), program.clone());
        self.by_text.insert(text, class.clone());
        class
    }
}
