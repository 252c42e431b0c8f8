// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces a match: works out the changes, and refuses matches that cannot be replaced.

use super::borders::{Borders, Changes, End, Site};
use super::net::{ClassNumber, Link, Net, Node};
use super::references::outer;
use super::rule::{NewElement, Rule};
use super::search::Match;
use castanet_lang::{ClassName, Element, PortRef};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// What replaces a match, worked out in full.
pub(super) struct Edit {
    removed: Vec<usize>,
    /// The elements that stay, and by element of the replacement, which of them it is.
    stay: HashMap<usize, usize>,
    changes: Changes,
    elements: Vec<Draft>,
    rules: Rc<BTreeSet<usize>>,
}

/// A new element.
struct Draft {
    /// Its number in the replacement.
    number: usize,
    class: ClassNumber,
    /// The element of the router whose place it takes.
    model: usize,
    /// The scope in which it gets a name; none if it takes the name of the model.
    scope: Option<String>,
    base: String,
    class_name: ClassName,
    config: String,
}

/// A replacement that was made.
pub(super) struct Done {
    /// The declarations of the removed elements.
    pub removed: Vec<String>,
    /// The declarations of the new elements.
    pub added: Vec<String>,
    /// The new elements.
    pub new: Vec<usize>,
    /// The other elements that have other connections than before.
    pub touched: BTreeSet<usize>,
}

/// Works out replacements of matches of one rule.
pub(super) struct Planner<'a> {
    pub net: &'a Net,
    pub rule: &'a Rule,
    /// The number of the rule.
    pub number: usize,
    /// The classes of the replacement's elements.
    pub classes: &'a [ClassNumber],
    /// Elements that configuration strings name, each with an element whose string it is.
    pub references: &'a HashMap<String, String>,
}

impl Planner<'_> {
    /// Works out the changes. Returns none if the match cannot be replaced. `named` gets the names of elements that would
    /// vanish although others name them.
    pub fn plan(&self, m: &Match, named: &mut BTreeSet<String>) -> Option<Edit> {
        let nodes: Vec<&Node> = m.elements.iter().map(|&e| self.net.node(e)).collect::<Option<_>>()?;
        // A replacement is not matched again by its own pattern, or many rules would go on for ever.
        if nodes.iter().all(|n| n.rules.contains(&self.number)) {
            return None;
        }
        let mut rules: BTreeSet<usize> = nodes.iter().flat_map(|n| n.rules.iter().copied()).collect();
        rules.insert(self.number);
        let at = Site::new(self, m);
        let gone = (0..nodes.len()).filter(|p| !at.stays.contains_key(p));
        let removed: Vec<usize> = gone.filter_map(|p| m.elements.get(p).copied()).collect();
        let borders = Borders::new(&at)?;
        borders.replacement_is_connected(&at)?;
        let changes = borders.changes(&at)?;
        let elements = self.drafts(m, &nodes, &removed)?;
        if let Some(name) = self.vanishing_name(&nodes, &at) {
            named.insert(name);
            return None;
        }
        let stay = at.stays.iter().filter_map(|(p, r)| Some((*r, *m.elements.get(*p)?))).collect();
        Some(Edit { removed, stay, changes, elements, rules: Rc::new(rules) })
    }

    /// Returns the name of an element that would vanish although another element's configuration string names it. An element
    /// also vanishes if another class takes its name, because its handlers are gone then.
    fn vanishing_name(&self, nodes: &[&Node], at: &Site<'_>) -> Option<String> {
        let new = self.rule.replacement.elements.iter();
        let kept: HashSet<usize> = new
            .filter_map(|e| {
                let p = e.namesake?;
                (self.rule.pattern.element(p)?.class == e.class).then_some(p)
            })
            .collect();
        let gone = nodes.iter().enumerate().filter(|(p, _)| !kept.contains(p) && !at.stays.contains_key(p));
        let named = gone.map(|(_, n)| &n.element.name).find(|name| self.references.contains_key(*name));
        named.cloned()
    }

    fn drafts(&self, m: &Match, nodes: &[&Node], removed: &[usize]) -> Option<Vec<Draft>> {
        let scope = common_scope(nodes);
        let first = removed.iter().chain(&m.elements).copied().min_by_key(|&e| {
            let gone = removed.contains(&e);
            (!gone, self.net.node(e).map(|n| n.place))
        })?;
        let draft = |(number, new): (usize, &NewElement)| {
            let namesake = new.namesake.and_then(|p| m.elements.get(p).copied());
            let model = namesake.unwrap_or(first);
            let own = namesake.and_then(|e| self.net.node(e)).map(|n| n.element.scope());
            let config = m.values.substitute(&new.args, &self.rule.variables, own.unwrap_or(scope))?;
            Some(Draft {
                number,
                class: *self.classes.get(number)?,
                model,
                scope: namesake.is_none().then(|| scope.to_string()),
                base: new.name.clone().unwrap_or_else(|| new.class.to_string()),
                class_name: new.class.clone(),
                config,
            })
        };
        self.rule.replacement.elements.iter().enumerate().filter(|(_, e)| !e.stays).map(draft).collect()
    }
}

/// Returns the innermost scope that has all elements in it.
fn common_scope<'a>(nodes: &[&'a Node]) -> &'a str {
    let mut scopes = nodes.iter().map(|n| n.element.scope());
    let mut common = scopes.next().unwrap_or("");
    for scope in scopes {
        while !scope.starts_with(common) {
            common = outer(common);
        }
    }
    common
}

impl Edit {
    /// How many elements the change adds.
    pub fn added(&self) -> usize {
        self.elements.len()
    }
    /// Makes the change. `numbers` are those of the names given so far.
    pub fn apply(self, net: &mut Net, numbers: &mut HashMap<String, usize>) -> Done {
        let mut touched = BTreeSet::new();
        for &id in &self.changes.disconnect {
            if let Some(link) = net.link(id) {
                touched.extend([link.from.element, link.to.element]);
            }
            net.disconnect(id);
        }
        let models: Vec<Option<(Element, usize)>> =
            self.elements.iter().map(|d| net.node(d.model).map(|n| (n.element.clone(), n.place))).collect();
        let gone = self.removed.iter().filter_map(|&e| net.remove(e));
        let removed = gone.map(|n| n.element.declaration()).collect();
        let (mut added, mut new, mut numbered) = (Vec::new(), Vec::new(), self.stay.clone());
        for (draft, model) in self.elements.into_iter().zip(models) {
            let Some((model, place)) = model else { continue };
            let name = match &draft.scope {
                None => model.name.clone(),
                Some(scope) => net.fresh_name(scope, &draft.base, numbers),
            };
            let in_scope = draft.scope.as_deref().is_none_or(|s| s == model.scope());
            let element = Element {
                name,
                class: draft.class_name,
                config: draft.config,
                span: model.span,
                config_span: model.span,
                config_map: Vec::new(),
                origin: if in_scope { model.origin } else { Vec::new() },
            };
            added.push(element.declaration());
            let e = net.insert(element, draft.class, place, self.rules.clone());
            numbered.insert(draft.number, e);
            new.push(e);
        }
        for &e in self.stay.values() {
            net.set_rules(e, self.rules.clone());
        }
        let end = |end: End| match end {
            End::Old(port) => Some(port),
            End::New(r) => Some(PortRef { element: *numbered.get(&r.element)?, port: r.port }),
        };
        for link in self.changes.connect {
            let (Some(from), Some(to)) = (end(link.from), end(link.to)) else { continue };
            touched.extend([from.element, to.element]);
            let span = net.node(to.element).map(|n| n.element.span).unwrap_or_default();
            net.connect(Link { from, to, kind: link.kind, place: link.place, span });
        }
        touched.retain(|&e| net.node(e).is_some() && !new.contains(&e));
        Done { removed, added, new, touched }
    }
}
