// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves declarations and chains: the element that each name refers to, and the ports that each link joins.

use super::body::{Class, Link, Node};
use super::missing::missing_class;
use super::ports::PortList;
use super::scope::{Name, Scope, Scopes};
use super::{MAX_CONNECTIONS, Unknown};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Connection, Core, Elem, PortItem};

/// Where an element may stand in a chain: `input` only at the start, `output` only at the end, others anywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Element,
    Input,
    Output,
}

/// An element in a connection list, after its name is resolved.
struct Operand<'s> {
    /// The node of the element; `None` if the name could not be resolved. In that case, an error has been reported.
    node: Option<usize>,
    role: Role,
    inputs: PortList<'s>,
    outputs: PortList<'s>,
    span: Span,
}

impl<'a> Scopes<'a, '_> {
    /// Resolves a declaration or a chain. `unfinished` is the position of the previous chain; `None` if there is no
    /// previous chain, or if that chain ended in `output`.
    pub fn connection<'s>(
        &mut self,
        scope: &mut Scope<'a, 's>,
        c: &'s Connection,
        unfinished: &mut Option<Span>,
    ) {
        if let ([list], []) = (c.lists.as_slice(), c.links.as_slice())
            && self.declaration_of_many(scope, list)
        {
            return;
        }
        let chained = !c.links.is_empty();
        let first = c.lists.first().and_then(|l| l.first());
        if let (Some(Elem { core: Core::Implicit, outputs: None, span, .. }), Some(before)) =
            (first, *unfinished)
        {
            let span = c.links.first().map_or(*span, |l| span.to(l.1));
            let d = Diagnostic::warning("suggest 'input ->' or '[0] ->' to start connection", span);
            let d = d.at("starts at 'input'").label("this chain does not end in 'output'", before);
            self.report.push(d.help("remove the ';' before it if the chain should continue"));
        }
        for (i, list) in c.lists.iter().enumerate() {
            for elem in list.iter() {
                self.stray_ports(elem, chained && i > 0, chained && i + 1 < c.lists.len());
            }
        }
        // The operands of two neighbouring lists. The vectors are used again for each link.
        let (mut left, mut right): (Vec<Operand<'s>>, Vec<Operand<'s>>) = (Vec::new(), Vec::new());
        for (i, list) in c.lists.iter().enumerate() {
            right.clear();
            right.extend(list.iter().map(|e| self.operand(scope, e, i == 0)));
            if let Some((fat, arrow)) = i.checked_sub(1).and_then(|i| c.links.get(i)) {
                self.link(scope, &left, &right, *fat, *arrow);
            }
            std::mem::swap(&mut left, &mut right);
        }
        if chained {
            let ends = !c.lists.is_empty() && left.iter().all(|p| p.role == Role::Output);
            let span =
                c.lists.first().and_then(|l| l.first()).zip(c.links.last()).map(|(e, l)| e.span.to(l.1));
            *unfinished = span.filter(|_| !ends);
        }
    }
    /// Resolves `a, b, c :: Class(config)`, which declares all names with the same class.
    fn declaration_of_many(&mut self, scope: &mut Scope<'a, '_>, list: &[Elem]) -> bool {
        let Some((last, bare)) = list.split_last() else { return false };
        let Core::Name { name: last_name, class: Some(written) } = &last.core else { return false };
        let is_bare = |e: &Elem| {
            matches!(e.core, Core::Name { class: None, .. })
                && e.config.is_none()
                && e.inputs.is_none()
                && e.outputs.is_none()
        };
        if bare.is_empty() || !bare.iter().all(is_bare) || last.inputs.is_some() || last.outputs.is_some() {
            return false;
        }
        let class = self.class(written, "");
        for elem in bare {
            if let Core::Name { name, .. } = elem.core {
                self.declare(scope, name, class, name, last.config);
            }
        }
        self.declare(scope, *last_name, class, last.span, last.config);
        true
    }
    fn stray_ports(&mut self, elem: &Elem, has_before: bool, has_after: bool) {
        if matches!(elem.core, Core::Implicit | Core::Missing) {
            return;
        }
        if let (Some(ports), false) = (&elem.inputs, has_before) {
            let d = Diagnostic::error("input ports ignored at start of chain", ports.span)
                .at("nothing is connected to them");
            self.report.push(d.help("input ports stand before an element, output ports after it"));
        }
        if let (Some(ports), false) = (&elem.outputs, has_after) {
            let d = Diagnostic::error("output ports ignored at end of chain", ports.span)
                .at("nothing is connected to them");
            self.report.push(d.help("input ports stand before an element, output ports after it"));
        }
    }

    fn operand<'s>(&mut self, scope: &mut Scope<'a, 's>, elem: &'s Elem, first: bool) -> Operand<'s> {
        let mut implied = (0, 0);
        let mut role = Role::Element;
        let node = match &elem.core {
            Core::Missing => None,
            Core::Implicit => {
                role = if first { Role::Input } else { Role::Output };
                scope.ports.last().map(|p| if first { p.0 } else { p.1 })
            }
            Core::Name { name, class: None } => {
                let pseudo = self.pseudo(scope, *name);
                if let Some((node, found)) = pseudo {
                    role = found;
                    self.no_config(elem, "configuration string ignored on element reference");
                    Some(node)
                } else {
                    self.bare_name(scope, *name, elem)
                }
            }
            Core::Name { name, class: Some(written) } => {
                let class = self.class(written, "");
                let end = match written {
                    ast::Class::Name(span) => *span,
                    _ => *name,
                };
                self.declare(scope, *name, class, name.to(end), elem.config)
            }
            Core::Compound(c) => {
                let class = self.compound(c, "", c.span);
                let brace = Span { end: c.span.start + 1, ..c.span };
                Some(scope.element(None, "", class, (brace, elem.config), self.classes.len()))
            }
            Core::Group(g) => {
                self.no_config(elem, "configuration string ignored on group");
                let ports = (scope.node(Node::Group), scope.node(Node::Group));
                let since = scope.body.links.len();
                scope.ports.push(ports);
                self.statements(scope, &g.statements, false);
                scope.ports.pop();
                (implied, _) = self.port_counts(&scope.body, ports, since, "(anonymous group)", g.span);
                self.check_group_ports(implied, elem);
                // A group has two nodes, its `input` and its `output`. A link into the group leads to its
                // `input`, and a link out of it starts at its `output`. The function `end` chooses the node.
                Some(ports.0)
            }
        };
        Operand {
            node,
            role,
            inputs: PortList::new(elem.inputs.as_deref(), implied.0),
            outputs: PortList::new(elem.outputs.as_deref(), implied.1),
            span: elem.span,
        }
    }
    fn no_config(&mut self, elem: &Elem, message: &str) {
        if let Some(config) = elem.config {
            let d = Diagnostic::error(message, config).at("no element is declared here").keeps_flat();
            let (text, name) = (self.text(config).trim(), self.text(elem.span));
            let name = name.split(['(', '[', ' ']).next().unwrap_or("");
            let ports = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            self.report.push(if ports && !name.is_empty() {
                d.help(format!("ports stand in square brackets: {name} [{text}]"))
            } else {
                d.help("give the configuration where the element is declared")
            });
        }
    }
    fn pseudo(&self, scope: &Scope<'_, '_>, name: Span) -> Option<(usize, Role)> {
        let ports = scope.ports.last()?;
        match self.text(name) {
            "input" => Some((ports.0, Role::Input)),
            "output" => Some((ports.1, Role::Output)),
            _ => None,
        }
    }
    /// Resolves a name without a class: first as an element, then as a class, else reports an error.
    fn bare_name(&mut self, scope: &mut Scope<'a, '_>, span: Span, elem: &Elem) -> Option<usize> {
        let name = self.text(span);
        if let Some(known) = scope.names.get(name) {
            let (node, guessed) = (known.node, known.guessed);
            if node.is_some() && !guessed {
                self.no_config(elem, "configuration string ignored on element reference");
            }
            return node;
        }
        let class = match self.find_class(name) {
            Some(class) => Some(class),
            None if self.options.unknown == Unknown::Opaque
                && scope.declared_after(self.sources, name, span).is_none() =>
            {
                Some(Class::Plain(name))
            }
            None if missing_class(name).is_some()
                && scope.declared_after(self.sources, name, span).is_none() =>
            {
                self.missing_class(name, span);
                Some(Class::Plain(name))
            }
            None => None,
        };
        if let Some(class) = class {
            self.use_as_class(name, span);
            return Some(scope.element(None, name, class, (span, elem.config), self.classes.len()));
        }
        if scope.declared_after(self.sources, name, span).is_none() {
            // As in Click, a name that is not declared as an element counts as a class from here on, even if there is
            // no such class.
            self.use_as_class(name, span);
        }
        self.undeclared(scope, name, span, elem)
    }
    fn declare(
        &mut self,
        scope: &mut Scope<'a, '_>,
        span: Span,
        class: Option<Class<'a>>,
        at: Span,
        config: Option<Span>,
    ) -> Option<usize> {
        let name = self.text(span);
        if self.pseudo(scope, span).is_some() {
            let d = Diagnostic::error(format!("redeclaration of element '{name}'"), span);
            self.report.push(d.at("declared in every compound and group").help("choose another name"));
            return None;
        }
        self.refuse_class_name(name, span);
        let known = scope.names.get(name).copied();
        if let Some(Name { node: Some(node), guessed: true, .. }) = known {
            // The name was used before this declaration, so the element exists already.
            if let (Some(class), Some(Node::Element(index))) = (class, scope.body.nodes.get(node))
                && let Some(decl) = scope.body.decls.get_mut(*index as usize)
            {
                (decl.class, decl.span, decl.config) = (class, at, config);
                decl.classes = self.classes.len();
            }
            scope.names.insert(name, Name { node: Some(node), span, guessed: false });
            return Some(node);
        }
        if let Some(Name { node: Some(node), span: first, .. }) = known {
            let d =
                Diagnostic::error(format!("redeclaration of element '{name}'"), span).at("declared again");
            let d = d.note(format!("element '{name}' previously declared here"), first);
            self.report.push(d.help("give one of the elements another name").keeps_flat());
            return Some(node);
        }
        let node =
            class.map(|class| scope.element(Some(name), name, class, (at, config), self.classes.len()));
        scope.names.insert(name, Name { node, span, guessed: false });
        node
    }

    /// Connects the outputs of one list to the inputs of the next.
    fn link(
        &mut self,
        scope: &mut Scope<'a, '_>,
        left: &[Operand<'_>],
        right: &[Operand<'_>],
        fat: bool,
        arrow: Span,
    ) {
        for p in left.iter().filter(|p| p.role == Role::Output) {
            self.report.error("'output' may only be used as a sink", p.span, "used as a source");
        }
        for p in right.iter().filter(|p| p.role == Role::Input) {
            self.report.error("'input' may only be used as a source", p.span, "used as a sink");
        }
        if let ([l], [r]) = (left, right)
            && let (Some(p), Some(q)) = (l.outputs.single(), r.inputs.single())
        {
            self.push_links(scope, &[end(scope, l, p, 1)], &[end(scope, r, q, 0)], arrow);
            return;
        }
        let fixed = |side: &mut dyn Iterator<Item = PortList<'_>>| {
            side.map(PortList::fixed).fold(0, usize::saturating_add)
        };
        let (mut n, mut m) =
            (fixed(&mut left.iter().map(|p| p.outputs)), fixed(&mut right.iter().map(|p| p.inputs)));
        let is_open = |l: &PortList<'_>| l.open().is_some();
        let open = left.iter().filter(|p| is_open(&p.outputs)).count()
            + right.iter().filter(|p| is_open(&p.inputs)).count();
        if open > 1 {
            let d = Diagnostic::error("at most one expandable port allowed per connection", arrow);
            let d = d.at("each list would take as many ports as the other side has");
            self.report.push(d.help("write the last port of one list, such as '[0-3]'"));
            return;
        }
        // A list of a single element without port numbers takes as many ports as the other side has.
        let follows =
            |side: &[Operand<'_>], list: for<'s> fn(&Operand<'s>) -> PortList<'s>, other: usize| match side {
                [p] => fat && open == 0 && other > 1 && !list(p).given(),
                _ => false,
            };
        let left_follows = follows(left, |p| p.outputs, m);
        let right_follows = !left_follows && follows(right, |p| p.inputs, n);
        let (mut more_left, mut more_right) = (0, 0);
        if left_follows {
            (more_left, n) = (m, m);
        } else if right_follows {
            (more_right, m) = (n, n);
        } else if left.iter().any(|p| is_open(&p.outputs)) {
            more_left = m.saturating_sub(n);
            n += more_left;
        } else if right.iter().any(|p| is_open(&p.inputs)) {
            more_right = n.saturating_sub(m);
            m += more_right;
        }
        if n > 1 && m > 1 && !fat {
            let d = Diagnostic::error("syntax error: many-to-many connections require '=>'", arrow);
            self.report.push(
                d.at(format!("{n} outputs to {m} inputs")).help("write '=>' to connect them one to one"),
            );
            return;
        }
        if n == 0 || m == 0 || (n != m && n > 1 && m > 1) {
            let d =
                Diagnostic::error(format!("connection mismatch: {n} outputs connected to {m} inputs"), arrow);
            self.report.push(d.at("'=>' connects one to one"));
            return;
        }
        // Check the limit before the port lists are expanded, because these lists may be long.
        if n.max(m) > self.connections_left {
            self.too_many(arrow);
            return;
        }
        let mut outs = Vec::with_capacity(n);
        for p in left {
            let ports = p.outputs.ports(more_left, left_follows.then_some(0));
            outs.extend(ports.into_iter().map(|port| end(scope, p, port, 1)));
        }
        let mut ins = Vec::with_capacity(m);
        for p in right {
            let ports = p.inputs.ports(more_right, right_follows.then_some(0));
            ins.extend(ports.into_iter().map(|port| end(scope, p, port, 0)));
        }
        self.push_links(scope, &outs, &ins, arrow);
    }
    fn too_many(&mut self, at: Span) {
        let d = Diagnostic::error(
            format!("configuration is too large: more than {MAX_CONNECTIONS} connections"),
            at,
        );
        self.report.push(d.at("the limit is exceeded here"));
    }
    /// Connects two lists of ends one to one. If one side has a single end, it is connected to all ends of the
    /// other.
    fn push_links(&mut self, scope: &mut Scope<'a, '_>, outs: &[End], ins: &[End], arrow: Span) {
        let count = outs.len().max(ins.len());
        let Some(left) = self.connections_left.checked_sub(count) else { return self.too_many(arrow) };
        self.connections_left = left;
        for i in 0..count {
            let from = outs.get(if outs.len() == 1 { 0 } else { i });
            let to = ins.get(if ins.len() == 1 { 0 } else { i });
            if let (Some(&(Some(a), p, from_span)), Some(&(Some(b), q, to_span))) = (from, to) {
                let [from, to] = [(a, p), (b, q)].map(|(node, port)| (node as u32, port as u32));
                scope.body.links.push(Link { from, to, span: from_span.to(to_span) });
            }
        }
    }
    /// Reports port numbers that a group does not have.
    fn check_group_ports(&mut self, has: (usize, usize), elem: &Elem) {
        for (list, count, side) in [(&elem.inputs, has.0, "input"), (&elem.outputs, has.1, "output")] {
            let Some(list) = list else { continue };
            let last = list.items.iter().map(|i| match *i {
                PortItem::Range(_, b) => b,
                PortItem::From(a) => a,
            });
            if let Some(port) = last.max().filter(|&p| p >= count) {
                let d = Diagnostic::error(format!("'(anonymous group)' {side} {port} missing"), list.span);
                self.report.push(d.at(format!("the group uses {}", super::overload::count(count, side))));
            }
        }
    }
}

/// One end of a connection: node (`None` if unresolved and reported), port, source position.
type End = (Option<usize>, usize, Span);

/// The end for one port of an element. If the element is a group, `group` selects one of its two nodes: 0 for its
/// `input`, 1 for its `output`.
fn end(scope: &Scope<'_, '_>, p: &Operand<'_>, port: usize, group: usize) -> End {
    let node = p.node.map(|n| match scope.body.nodes.get(n) {
        Some(Node::Group) if p.role == Role::Element => n + group,
        _ => n,
    });
    (node, port, p.span)
}
