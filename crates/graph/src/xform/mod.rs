// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces parts of a configuration by others that do the same ("Programming language optimizations for modular router
//! configurations", ASPLOS 2002, section 6.2).
//!
//! A pattern and its replacement are compound classes `X` and `X_Replacement`. A match of a pattern is a set of elements with
//! the same classes, the same arguments and the same connections. A variable `$v` in the pattern stands for any argument.
//! Connections that lead out of a match are allowed only at ports that the pattern connects to its `input` and
//! `output`.
//!
//! [`xform`] does not begin anew after each replacement. It keeps a list of elements for each rule: at first all elements
//! of the class that is rarest, of those in the pattern, and then the elements that a replacement has changed. A match that a
//! replacement makes possible has one of these.

mod borders;
mod config;
mod net;
mod pattern;
mod references;
mod replace;
mod rule;
mod search;
mod shipped;

#[cfg(test)]
mod tests;

pub use rule::{Direction, Rule};
pub use shipped::{SHIPPED, Shipped};

use castanet_lang::Flat;
use castanet_spec::ClassSpecs;
use net::{ClassNumber, Net};
use pattern::Step;
use replace::{Done, Edit, Planner};
use search::Search;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// A replacement that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The name of the rule.
    pub rule: String,
    /// The elements that were removed: `name :: Class`.
    pub removed: Vec<String>,
    /// The elements that took their place.
    pub added: Vec<String>,
}

/// A match that was not replaced, because another element needs one of its elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The name of the rule.
    pub rule: String,
    /// The element that would have been removed.
    pub element: String,
    /// The element whose configuration string names it.
    pub named_by: String,
}

/// The result of [`xform`].
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The configuration.
    pub flat: Flat,
    /// The replacements, in order.
    pub applied: Vec<Applied>,
    /// The matches that were not replaced.
    pub refused: Vec<Refused>,
    /// How often an element of the configuration was compared with an element of a pattern.
    pub comparisons: u64,
}

/// Why the replacements were not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Patterns could match in too many ways.
    #[error(
        "the search takes too long; patterns whose elements are connected to each other are found much faster"
    )]
    Comparisons,
    /// Replacements made too many elements.
    #[error("the replacements make more than {} elements", Limits::DEFAULT.added)]
    Elements,
}

/// Limits on the work of [`xform`].
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The maximum number of comparisons of an element of the configuration with an element of a pattern.
    comparisons: u64,
    /// The maximum number of elements that replacements make.
    added: usize,
}

impl Limits {
    const DEFAULT: Limits = Limits { comparisons: 50_000_000, added: 1_000_000 };
}

/// Replaces all matches of all rules, until there are none. Of the rules that have a match, the first one is applied.
///
/// A replacement is not matched again by its own pattern: of the elements of a match, at least one must come from elsewhere.
/// An element also counts as made by those rules that have made what it replaced, so that rules that undo each other come to
/// an end.
///
/// # Errors
/// The replacements or the search for matches became too large.
pub fn xform(flat: Flat, rules: &[Rule], classes: &dyn ClassSpecs) -> Result<Outcome, TooLarge> {
    within(Limits::DEFAULT, flat, rules, classes)
}

fn within(limits: Limits, flat: Flat, rules: &[Rule], classes: &dyn ClassSpecs) -> Result<Outcome, TooLarge> {
    let references = references::references(&flat, classes);
    let mut net = Net::new(flat, classes);
    let mut works: Vec<Work<'_>> =
        rules.iter().enumerate().map(|(n, rule)| Work::new(n, rule, &mut net, classes)).collect();
    let mut names = HashMap::new();
    let (mut applied, mut refused) = (Vec::new(), BTreeSet::new());
    let (mut budget, mut left) = (limits.comparisons, limits.added);
    // The first rule that may have a match goes first. After each replacement, that may be an earlier one.
    let mut n = 0;
    while let Some(work) = works.get_mut(n) {
        let Some(e) = work.next() else {
            n += 1;
            continue;
        };
        let mut named = BTreeSet::new();
        let edit = work.find(&net, e, &references, &mut named, &mut budget);
        let rule = work.rule.name();
        refused.extend(named.into_iter().filter_map(|element| {
            let named_by = references.get(&element)?.clone();
            Some(Refused { rule: rule.to_string(), element, named_by })
        }));
        if budget == 0 {
            return Err(TooLarge::Comparisons);
        }
        let Some(edit) = edit else { continue };
        left = left.checked_sub(edit.added()).ok_or(TooLarge::Elements)?;
        let Done { removed, added, new, touched } = edit.apply(&mut net, &mut names);
        applied.push(Applied { rule: rule.to_string(), removed, added });
        works.iter_mut().for_each(|w| w.note(&net, &new, &touched));
        n = 0;
    }
    let refused = refused.into_iter().collect();
    Ok(Outcome { flat: net.into_flat(), applied, refused, comparisons: limits.comparisons - budget })
}

/// Where to search for an element.
#[derive(Clone, Copy, Debug)]
enum At {
    /// At one position of the pattern.
    Position(usize),
    /// At each position that has the class of the element.
    Everywhere,
}

/// A rule and the elements at which matches may be.
struct Work<'a> {
    number: usize,
    rule: &'a Rule,
    /// The classes of the elements of the pattern.
    classes: Vec<ClassNumber>,
    /// The classes of the elements of the replacement.
    new_classes: Vec<ClassNumber>,
    /// By position in the pattern: the order in which to search from there, computed on first use.
    plans: Vec<Option<Vec<Step>>>,
    pending: VecDeque<(usize, At)>,
    /// The elements that are pending everywhere.
    queued: HashSet<usize>,
}

impl<'a> Work<'a> {
    fn new(number: usize, rule: &'a Rule, net: &mut Net, specs: &dyn ClassSpecs) -> Work<'a> {
        let classes: Vec<_> = rule.pattern.elements.iter().map(|e| net.class(&e.class, specs)).collect();
        let new_classes = rule.replacement.elements.iter().map(|e| net.class(&e.class, specs)).collect();
        let rarest = classes.iter().enumerate().min_by_key(|(_, c)| net.of_class(**c).len());
        let pending = rarest
            .map(|(p, c)| net.of_class(*c).iter().map(|&e| (e, At::Position(p))).collect())
            .unwrap_or_default();
        let plans = vec![None; classes.len()];
        Work { number, rule, classes, new_classes, plans, pending, queued: HashSet::new() }
    }

    fn next(&mut self) -> Option<(usize, At)> {
        let next = self.pending.pop_front();
        if let Some((e, At::Everywhere)) = next {
            self.queued.remove(&e);
        }
        next
    }

    /// Finds a match that has an element at a position, and works out its replacement.
    fn find(
        &mut self,
        net: &Net,
        (e, at): (usize, At),
        references: &HashMap<String, String>,
        named: &mut BTreeSet<String>,
        budget: &mut u64,
    ) -> Option<Edit> {
        let class = net.node(e)?.class;
        let planner =
            Planner { net, rule: self.rule, number: self.number, classes: &self.new_classes, references };
        let positions = match at {
            At::Position(p) => p..p + 1,
            At::Everywhere => 0..self.classes.len(),
        };
        for p in positions.filter(|&p| self.classes.get(p) == Some(&class)) {
            let rule = self.rule;
            let Some(plan) = self.plans.get_mut(p) else { continue };
            let plan = plan.get_or_insert_with(|| rule.pattern.plan(p));
            let search = Search::new(net, rule, &self.classes, plan, budget);
            let edit = search.run(e, &mut |m| planner.plan(m, named));
            if edit.is_some() {
                return edit;
            }
        }
        None
    }

    /// Notes that elements are new or have other connections. New elements come first, so that a chain of elements
    /// that a rule shortens becomes as short as possible.
    fn note(&mut self, net: &Net, new: &[usize], touched: &BTreeSet<usize>) {
        let mut fits = |e: usize| {
            let class = net.node(e).map(|n| n.class);
            class.is_some_and(|c| self.classes.contains(&c)) && self.queued.insert(e)
        };
        let new: Vec<usize> = new.iter().copied().filter(|&e| fits(e)).collect();
        let touched: Vec<usize> = touched.iter().copied().filter(|&e| fits(e)).collect();
        new.into_iter().rev().for_each(|e| self.pending.push_front((e, At::Everywhere)));
        touched.into_iter().for_each(|e| self.pending.push_back((e, At::Everywhere)));
    }
}
