// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands compounds: elements in flat order, configuration strings with variables substituted, and
//! connections.

mod fragments;

pub use fragments::Fragment;
pub(super) use fragments::fragments;

use super::body::{Body, Class, Decl, Definition, Link, Node};
use super::overload::{Choice, Use, body_form, body_signature, choose, count, use_signature};
use super::report::Report;
use super::tunnels::{Net, TUNNEL};
use super::variables::{Budget, Env};
use super::{Globals, Loaded, MAX_CONNECTIONS, MAX_ELEMENTS, MAX_TEXT, Options};
use crate::args;
use crate::class_name::ClassName;
use crate::diagnostic::Diagnostic;
use crate::flat::{Element, Flat, Origin};
use crate::source::{Sources, Span};
use crate::syntax::MAX_NESTING;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// The help line of an error lists at most this many alternatives of an overloaded compound class.
const SHOWN: usize = 4;

struct Expander<'a, 'c, 'r> {
    sources: &'a Sources,
    classes: &'c [Definition<'a>],
    report: &'r mut Report,
    flat: Flat,
    /// The names of classes that elements have so far.
    class_names: FxHashMap<&'a str, ClassName>,
    net: Net,
    budget: Budget,
    /// The number of compounds that may still be expanded.
    compounds: usize,
    /// Whether a limit was exceeded. If so, no more elements or connections are added.
    stopped: bool,
    /// Whether a declared name contains a `/`. Such a name can be the same as the full name of an element in a
    /// compound.
    slashes: bool,
}

/// One use of a compound, with the data needed to expand it.
struct Instance<'c, 'a> {
    body: &'c Body<'a>,
    prefix: String,
    env: Rc<Env<'a>>,
    origin: Vec<Origin>,
    /// The nodes of the `input` and the `output` of the compound.
    ports: (u32, u32),
}

/// Builds the flat configuration from the file scope `top`.
pub(super) fn flatten<'a>(
    sources: &'a Sources,
    options: &Options<'_>,
    globals: Globals,
    classes: &[Definition<'a>],
    top: Body<'a>,
    report: &mut Report,
) -> Loaded {
    let env = match globals {
        Globals::Substitute => Env::top(&top.defines, options.defines),
        Globals::Keep => Env::top(&[], &[]),
    };
    let mut expander = Expander::new(sources, classes, report);
    let instance =
        Instance { body: &top, prefix: String::new(), env, origin: Vec::new(), ports: (TUNNEL, TUNNEL) };
    expander.expand(&instance);
    expander.connect();
    expander.check_names();
    let defines = top.defines.iter().map(|&(n, v)| (n.to_string(), v.to_string())).collect();
    Loaded { flat: expander.flat, defines, diagnostics: Vec::new() }
}

impl<'a, 'c, 'r> Expander<'a, 'c, 'r> {
    fn new(
        sources: &'a Sources,
        classes: &'c [Definition<'a>],
        report: &'r mut Report,
    ) -> Expander<'a, 'c, 'r> {
        Expander {
            sources,
            classes,
            report,
            flat: Flat::default(),
            class_names: FxHashMap::default(),
            net: Net::default(),
            budget: Budget { left: MAX_TEXT, cycle: false, spent: false },
            compounds: MAX_ELEMENTS,
            stopped: false,
            slashes: false,
        }
    }
    /// Computes the connections of the flat configuration.
    fn connect(&mut self) {
        let (connections, complete) = self.net.connections();
        if !complete {
            let d =
                Diagnostic::error("configuration is too large: too many connections through compounds", None);
            self.report.push(d.help(format!("at most {MAX_CONNECTIONS} connections are possible")));
        }
        self.flat.connections = connections;
    }

    fn stop(&mut self, what: &str, span: Span, origin: &[Origin]) {
        if !self.stopped {
            self.stopped = true;
            let mut d = Diagnostic::error(format!("configuration is too large: {what}"), span);
            d = d
                .at("the limit is exceeded here")
                .help("compounds or variables that double at each step grow very fast");
            if let Some(o) = origin.first() {
                d = d.label("in the expansion of this", o.span);
            }
            self.report.push(d);
        }
    }
    fn expand<'b: 'c>(&mut self, at: &Instance<'b, 'a>)
    where
        'c: 'b,
    {
        let body = at.body;
        // For each node, the numbers of its inputs and outputs that are used.
        let mut ports_used = vec![(0u32, 0u32); body.nodes.len()];
        for link in &body.links {
            if let Some(used) = ports_used.get_mut(link.from.0 as usize) {
                used.1 = used.1.max(link.from.1 + 1);
            }
            if let Some(used) = ports_used.get_mut(link.to.0 as usize) {
                used.0 = used.0.max(link.to.1 + 1);
            }
        }
        self.flat.elements.reserve(body.decls.len().min(MAX_ELEMENTS));
        self.net.nodes.reserve(body.nodes.len());
        self.net.links.reserve(body.links.len());
        // For each node of the body, two nodes of the expanded configuration, which may be the same. Connections to the
        // body's node end at the first one, and connections from it start at the second one.
        let mut ends = Vec::with_capacity(body.nodes.len());
        let mut inner = Vec::new();
        for (i, node) in body.nodes.iter().enumerate() {
            if self.stopped {
                return;
            }
            ends.push(match *node {
                Node::Input => (at.ports.0, at.ports.0),
                Node::Output => (at.ports.1, at.ports.1),
                Node::Group => {
                    let node = self.net.node(TUNNEL);
                    (node, node)
                }
                Node::Element(decl) => match body.decls.get(decl as usize) {
                    Some(decl) => {
                        let used = ports_used.get(i).copied().unwrap_or_default();
                        self.declaration(at, decl, used, &mut inner)
                    }
                    None => (TUNNEL, TUNNEL),
                },
            });
        }
        for link in &body.links {
            if self.net.links.len() >= MAX_CONNECTIONS {
                return self.stop(&format!("more than {MAX_CONNECTIONS} connections"), link.span, &at.origin);
            }
            let Link { from, to, span } = *link;
            if let (Some(first), Some(second)) = (ends.get(from.0 as usize), ends.get(to.0 as usize)) {
                self.net.links.push(Link { from: (first.1, from.1), to: (second.0, to.1), span });
            }
        }
        for instance in &inner {
            if !self.stopped {
                self.expand(instance);
            }
        }
    }
    /// Adds an element to the network, or pushes an instance of a compound on `inner`. Returns two node numbers:
    /// connections to the element or instance end at the first node, and connections from it start at the second.
    fn declaration<'b>(
        &mut self,
        at: &Instance<'b, 'a>,
        decl: &Decl<'a>,
        used: (u32, u32),
        inner: &mut Vec<Instance<'c, 'a>>,
    ) -> (u32, u32) {
        let mut name = String::with_capacity(at.prefix.len() + decl.name.len());
        name.push_str(&at.prefix);
        name.push_str(&decl.name);
        self.slashes |= decl.name.contains('/');
        self.budget.cycle = false;
        let config_span = decl.config.unwrap_or(Span { start: decl.span.end, ..decl.span });
        let raw = self.sources.snippet(config_span);
        let (config, config_map) = match at.env.substitute(raw, &mut self.budget) {
            None if raw.is_empty() => (String::new(), Vec::new()),
            None => (raw.to_string(), vec![(0..raw.len(), config_span)]),
            Some(pieces) => {
                let mut config = String::with_capacity(pieces.iter().map(|p| p.text.len()).sum());
                let mut map = Vec::with_capacity(pieces.len());
                for piece in pieces {
                    let start = config.len();
                    config.push_str(&piece.text);
                    let from = config_span.start as usize;
                    let from: Range<usize> = from + piece.from.start..from + piece.from.end;
                    map.push((start..config.len(), Span::new(config_span.file, from)));
                }
                (config, map)
            }
        };
        if self.budget.cycle {
            let d = Diagnostic::warning(
                format!("variables of '{name}' refer to each other too deeply"),
                config_span,
            );
            self.report.push(
                d.at("left as written")
                    .help("values may refer to other variables 10 levels deep, without cycles"),
            );
        }
        let origin_size: usize = at.origin.iter().map(Origin::size).sum();
        self.budget.take(name.len() + config.len() + origin_size);
        if self.budget.spent {
            self.stop(&format!("more than {} MB of text", MAX_TEXT >> 20), decl.span, &at.origin);
        }
        let plain = match decl.class {
            Class::Plain(class) => Some(class),
            Class::Defined(class) => {
                let of: Vec<String> = args::split(&config)
                    .into_iter()
                    .map(|r| args::cleaned(&config, r).into_owned())
                    .collect();
                let of = Use { args: &of, inputs: used.0 as usize, outputs: used.1 as usize };
                match self.instance(at, decl, class, &of, &name) {
                    Ok(instance) => {
                        let ports = instance.ports;
                        inner.push(instance);
                        return ports;
                    }
                    Err(plain) => plain,
                }
            }
        };
        // No alternative of the compound class matched, and an error about this has been reported. The connections of
        // this element vanish: they end at a placeholder for the ports of the compound, and nothing is connected behind
        // the placeholder.
        let Some(class) = plain else {
            let node = self.net.node(TUNNEL);
            return (node, node);
        };
        if self.flat.elements.len() >= MAX_ELEMENTS {
            self.stop(&format!("more than {MAX_ELEMENTS} elements"), decl.span, &at.origin);
        }
        let node = self.net.node(self.flat.elements.len() as u32);
        let class = self.class_names.entry(class).or_insert_with(|| class.into()).clone();
        self.flat.elements.push(Element {
            name,
            class,
            config,
            span: decl.span,
            config_span,
            config_map,
            origin: at.origin.clone(),
        });
        (node, node)
    }
    /// Returns the instance for a use of a compound class. Returns `Err(Some(class))` if the use resolves to a class
    /// defined outside the configuration, and `Err(None)` after an error, which has been reported.
    fn instance<'b>(
        &mut self,
        at: &Instance<'b, 'a>,
        decl: &Decl<'a>,
        class: usize,
        of: &Use<'_>,
        name: &str,
    ) -> Result<Instance<'c, 'a>, Option<&'a str>> {
        let used_as = self.classes.get(class).map_or("", |d| d.name);
        let (class, body, args) = match choose(self.classes, class, of) {
            Choice::Plain(class) => return Err(Some(class)),
            Choice::Body { class, body, args } => (class, body, args),
            Choice::Ports { class, body, args } => {
                self.report_ports(&format!("{name} :: {}", class.name), decl.span, class, body, of);
                (class, body, args)
            }
            Choice::None(candidates) => {
                self.report_no_match(used_as, decl.span, &candidates, of);
                return Err(None);
            }
        };
        if at.origin.len() >= MAX_NESTING {
            let d = Diagnostic::error("maximum compound element nesting depth exceeded", decl.span);
            let d = d.at(format!("compounds expand at most {MAX_NESTING} deep"));
            self.report.push(match at.origin.first() {
                Some(o) => d.label("in the expansion of this", o.span),
                None => d,
            });
            return Err(None);
        }
        if self.compounds == 0 {
            self.stop(&format!("more than {MAX_ELEMENTS} compounds expanded"), decl.span, &at.origin);
            return Err(None);
        }
        self.compounds -= 1;
        let mut origin = at.origin.clone();
        origin.push(Origin {
            instance: decl.name.to_string(),
            class: class.name.to_string(),
            span: decl.span,
            parameters: body.formals.iter().map(|f| f.name.to_string()).collect(),
        });
        // Each instance has its own copies of arguments and definitions, so they count against the budget.
        self.budget.take(args.len() + body.defines.len());
        Ok(Instance {
            body,
            prefix: format!("{name}/"),
            env: Env::inner(&at.env, class.depth, args, &body.defines),
            origin,
            ports: (self.net.node(TUNNEL), self.net.node(TUNNEL)),
        })
    }
    fn report_ports(
        &mut self,
        what: &str,
        span: Span,
        class: &Definition<'_>,
        body: &Body<'_>,
        of: &Use<'_>,
    ) {
        for (has, used, side) in [(body.inputs, of.inputs, "input"), (body.outputs, of.outputs, "output")] {
            let message = match used {
                _ if used > has => format!("'{what}' has no {side} {has}"),
                _ if used < has => format!("'{what}' {side} {used} unused"),
                _ => continue,
            };
            let d = Diagnostic::error(message, span)
                .at(format!("{} used, the class has {has}", count(used, side)));
            let help = match (used > has, side) {
                (true, "input") => {
                    format!("to give it one more, connect 'input' inside the class: input [{has}] -> ...")
                }
                (true, _) => {
                    format!("to give it one more, connect 'output' inside the class: ... -> [{has}] output")
                }
                (false, _) => format!("connect {side} {used}, or leave it out inside the class"),
            };
            let d = d.label("class defined here", class.span).help(help);
            // If the body of the class has gaps in its port numbers, the gaps have been reported at the body. The error
            // about an unused port is then only a consequence.
            self.report.push(if body.gaps && used < has { d.consequence() } else { d });
        }
    }
    fn report_no_match(
        &mut self,
        name: &str,
        span: Span,
        candidates: &[(&Definition<'_>, &Body<'_>)],
        of: &Use<'_>,
    ) {
        let mut d = Diagnostic::error(format!("no match for '{}'", use_signature(name, of)), span);
        d = d.at("no alternative takes these arguments and ports");
        let first = candidates.first().map(|c| c.0.span);
        if let Some(first) = first {
            d = d.label("class defined here", first);
        }
        d = d.note("candidates are:", first);
        for (class, body) in candidates {
            d = d.note(format!("  {}", body_signature(class.name, body)), class.span);
        }
        let forms: Vec<String> =
            candidates.iter().take(SHOWN).map(|(class, body)| body_form(class.name, body)).collect();
        self.report.push(if forms.is_empty() { d } else { d.help(format!("write {}", forms.join(" or "))) });
    }
    /// Reports elements with equal full names, such as an element named `a/b` and the `b` inside compound `a`.
    fn check_names(&mut self) {
        if !self.slashes {
            return;
        }
        let mut names: HashMap<&str, Span> = HashMap::with_capacity(self.flat.elements.len());
        for e in &self.flat.elements {
            if let Some(first) = names.insert(&e.name, e.span) {
                let d = Diagnostic::error(format!("redeclaration of element '{}'", e.name), e.span)
                    .at("declared again");
                self.report.push(d.note(format!("element '{}' previously declared here", e.name), first));
            }
        }
    }
}
