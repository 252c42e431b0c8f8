// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules: a pattern, and what replaces it.

use super::config::{Variables, arguments};
use super::pattern::Pattern;
use castanet_lang::elaborate::{Fragment, variables_of};
use castanet_lang::{ClassName, Diagnostic, PortRef, nearest};
use std::collections::{HashMap, HashSet};

/// What follows the name of a pattern in the name of its replacement.
const REPLACEMENT: &str = "_Replacement";

/// Which way rules are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Patterns are replaced by their replacements.
    Forward,
    /// Replacements are searched for, and replaced by the patterns.
    Reverse,
}

/// An element of a replacement.
#[derive(Clone, Debug)]
pub(super) struct NewElement {
    pub class: ClassName,
    /// The arguments of the configuration string, with variables.
    pub args: Vec<String>,
    /// The name that the replacement gives it; none for an anonymous element.
    pub name: Option<String>,
    /// The element of the pattern that has the same name.
    pub namesake: Option<usize>,
    /// Whether the namesake has the same class and configuration string, so that the element of the router stays.
    pub stays: bool,
}

/// What replaces a pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacement {
    pub elements: Vec<NewElement>,
    /// Connections between its elements.
    pub links: Vec<(PortRef, PortRef)>,
    /// By number of an input: the ports that it is connected to.
    pub inputs: Vec<Vec<PortRef>>,
    /// By number of an output: the ports that it is connected to.
    pub outputs: Vec<Vec<PortRef>>,
    /// Inputs that are connected directly to outputs.
    pub passages: Vec<(usize, usize)>,
}

/// A pattern with its replacement.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) variables: Variables,
    pub(super) pattern: Pattern,
    pub(super) replacement: Replacement,
}

impl Rule {
    /// The name of the rule: the class name of its pattern.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the rules of a file. `fragments` are the classes of the file: each class `X` for which there is a class
    /// `X_Replacement` is a pattern. If such classes have several alternatives, the first alternative of the one belongs to
    /// the first alternative of the other, and so on.
    pub fn read(fragments: &[Fragment], direction: Direction) -> (Vec<Rule>, Vec<Diagnostic>) {
        let mut by_name: HashMap<&str, Vec<&Fragment>> = HashMap::new();
        for f in fragments {
            by_name.entry(&f.name).or_default().push(f);
        }
        let (mut rules, mut wrong, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for f in fragments.iter().filter(|f| seen.insert(f.name.as_str())) {
            let name = f.name.as_str();
            if let Some(pattern) = name.strip_suffix(REPLACEMENT)
                && !by_name.contains_key(pattern)
            {
                let d = Diagnostic::warning(
                    format!("'{name}' replaces nothing: there is no class '{pattern}'"),
                    f.span,
                );
                let patterns = by_name.keys().copied().filter(|n| !n.ends_with(REPLACEMENT));
                wrong.push(match nearest(pattern, patterns) {
                    Some(near) => d.help(format!("did you mean '{near}{REPLACEMENT}'?")),
                    None => d.help("the pattern and its replacement must be in the same file"),
                });
            }
            let (Some(patterns), Some(replacements)) =
                (by_name.get(name), by_name.get(format!("{name}{REPLACEMENT}").as_str()))
            else {
                continue;
            };
            if patterns.len() != replacements.len() {
                let (n, m) = (patterns.len(), replacements.len());
                let text = format!("'{name}' has {n} alternatives, but '{name}{REPLACEMENT}' has {m}");
                wrong
                    .push(Diagnostic::error(text, f.span).help("each alternative needs its own replacement"));
            }
            for (pattern, replacement) in patterns.iter().zip(replacements) {
                let rule = match direction {
                    Direction::Forward => Rule::new(name, pattern, replacement),
                    Direction::Reverse => Rule::new(name, replacement, pattern).map_err(|d| {
                        Box::new(d.note(format!("'{name}' cannot be applied in reverse"), pattern.span))
                    }),
                };
                match rule {
                    Ok(rule) => rules.push(rule),
                    Err(d) => wrong.push(*d),
                }
            }
        }
        (rules, wrong)
    }

    fn new(name: &str, from: &Fragment, to: &Fragment) -> Result<Rule, Box<Diagnostic>> {
        for (side, has, wants) in [
            ("inputs", to.inputs.len(), from.inputs.len()),
            ("outputs", to.outputs.len(), from.outputs.len()),
        ] {
            if has != wants {
                let text = format!("'{}' has {wants} {side}, but '{}' has {has}", from.name, to.name);
                let d = Diagnostic::error(text, to.span)
                    .at("the numbers must be equal")
                    .label("to be replaced by the other", from.span)
                    .help("let unwanted packets go to a Discard, and let an Idle feed an unused output");
                return Err(Box::new(d));
            }
        }
        let rest = from.parameters.iter().filter(|p| p.1).map(|p| p.0.clone()).collect();
        let mut variables = Variables::new(rest);
        let pattern = Pattern::new(from, &mut variables)?;
        let replacement = Replacement::new(from, to, &variables)?;
        Ok(Rule { name: name.to_string(), variables, pattern, replacement })
    }
}

/// Whether a name was given by the writer of a file, not made up for an anonymous element.
fn is_given(name: &str) -> bool {
    !name.contains('@')
}

impl Replacement {
    fn new(from: &Fragment, to: &Fragment, variables: &Variables) -> Result<Replacement, Box<Diagnostic>> {
        let named = from.elements.iter().enumerate().filter(|(_, e)| is_given(&e.name));
        let named: HashMap<&str, usize> = named.map(|(p, e)| (e.name.as_str(), p)).collect();
        let mut elements = Vec::with_capacity(to.elements.len());
        for e in &to.elements {
            for name in variables_of(&e.config) {
                if variables.find(name).is_none() {
                    let d = Diagnostic::error(
                        format!("'{}': variable '${name}' has no value", to.name),
                        e.config_place(0..e.config.len()),
                    );
                    let known: Vec<&str> = (0..variables.len()).map(|v| variables.name(v)).collect();
                    let d = d.at(format!("'{}' does not use it", from.name));
                    return Err(Box::new(match nearest(name, known.iter().copied()) {
                        Some(near) => d.did_you_mean(&format!("${near}")),
                        None => {
                            d.help(format!("a variable gets its value from an argument in '{}'", from.name))
                        }
                    }));
                }
            }
            let namesake = if is_given(&e.name) { named.get(e.name.as_str()).copied() } else { None };
            let old = namesake.and_then(|p| from.elements.get(p));
            let stays = old.is_some_and(|old| {
                old.class == e.class && arguments(&old.config, None) == arguments(&e.config, None)
            });
            elements.push(NewElement {
                class: e.class.clone(),
                args: arguments_with_text(&e.config),
                name: is_given(&e.name).then(|| e.name.clone()),
                namesake,
                stays,
            });
        }
        Ok(Replacement {
            elements,
            links: to.connections.iter().map(|c| (c.from, c.to)).collect(),
            inputs: to.inputs.clone(),
            outputs: to.outputs.clone(),
            passages: to.passages.clone(),
        })
    }

    pub fn element(&self, r: usize) -> Option<&NewElement> {
        self.elements.get(r)
    }
}

/// Splits a configuration string into its arguments, without comments.
fn arguments_with_text(config: &str) -> Vec<String> {
    use castanet_lang::args::{cleaned, split};
    split(config).into_iter().map(|r| cleaned(config, r).into_owned()).collect()
}
