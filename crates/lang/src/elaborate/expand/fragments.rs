// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands compound classes on their own, without an element that uses them.

use super::super::body::{Body, Definition};
use super::super::variables::Env;
use super::super::{Options, report::Report};
use super::{Expander, Instance};
use crate::flat::{Connection, Element, PortRef};
use crate::source::{Sources, Span};
use std::collections::HashMap;

/// The contents of a compound class: a part of a configuration, with inputs and outputs. Variables of the file scope are
/// substituted in it, but the parameters of the class are not.
#[derive(Clone, Debug, Default)]
pub struct Fragment {
    /// The name of the class.
    pub name: String,
    /// The position of the name in its definition.
    pub span: Span,
    /// The names of the parameters, without `$`. The flag says whether it is the parameter that takes all remaining
    /// arguments (`__REST__`).
    pub parameters: Vec<(String, bool)>,
    /// The elements.
    pub elements: Vec<Element>,
    /// The connections between the elements.
    pub connections: Vec<Connection>,
    /// By number of an input of the fragment: the inputs of elements that it is connected to.
    pub inputs: Vec<Vec<PortRef>>,
    /// By number of an output of the fragment: the outputs of elements that it is connected to.
    pub outputs: Vec<Vec<PortRef>>,
    /// Inputs that are connected directly to outputs.
    pub passages: Vec<(usize, usize)>,
}

/// The nesting depth of classes defined at file scope.
const FILE_SCOPE: usize = 1;

/// Expands the compound classes that are defined at file scope, in the order of their definitions. Of several classes of
/// the same name, only the last one is expanded. A class with alternatives gives one fragment for each.
pub(in super::super) fn fragments<'a>(
    sources: &'a Sources,
    options: &Options<'_>,
    classes: &[Definition<'a>],
    top: &Body<'a>,
    report: &mut Report,
) -> Vec<Fragment> {
    let at_file_scope =
        || classes.iter().enumerate().filter(|(_, c)| c.depth == FILE_SCOPE && !c.is_anonymous());
    let last: HashMap<&str, usize> = at_file_scope().map(|(i, c)| (c.name, i)).collect();
    let wanted = at_file_scope().filter(|(i, c)| last.get(c.name) == Some(i)).map(|c| c.1);
    let wanted: Vec<(&Definition<'a>, &Body<'a>)> =
        wanted.flat_map(|c| c.alternatives.iter().map(move |body| (c, body))).collect();

    // All classes are expanded into one configuration, so that the limits apply to all of them together. In front of the
    // elements of each fragment are two elements that stand for its input and output.
    let mut expander = Expander::new(sources, classes, report);
    let mut starts = Vec::with_capacity(wanted.len());
    for &(_, body) in &wanted {
        let is_parameter = |name: &str| body.formals.iter().any(|f| f.name == name);
        let defines: Vec<_> = top.defines.iter().filter(|d| !is_parameter(d.0)).copied().collect();
        let given: Vec<_> = options.defines.iter().filter(|d| !is_parameter(&d.0)).cloned().collect();
        let env = Env::inner(&Env::top(&defines, &given), FILE_SCOPE, Vec::new(), &body.defines);
        starts.push(expander.flat.elements.len());
        let ports = (expander.pseudo_element(body.span), expander.pseudo_element(body.span));
        expander.expand(&Instance { body, prefix: String::new(), env, origin: Vec::new(), ports });
    }
    expander.connect();
    split(&wanted, &starts, expander)
}

/// Splits the configuration into fragments. `starts` are the indices at which they begin.
fn split<'a>(
    wanted: &[(&Definition<'a>, &Body<'a>)],
    starts: &[usize],
    expander: Expander<'a, '_, '_>,
) -> Vec<Fragment> {
    let mut all: Vec<Fragment> = wanted
        .iter()
        .map(|(class, body)| Fragment {
            name: class.name.to_string(),
            span: class.span,
            parameters: body
                .formals
                .iter()
                .map(|f| (f.name.to_string(), f.keyword == Some("__REST__")))
                .collect(),
            inputs: vec![Vec::new(); body.inputs],
            outputs: vec![Vec::new(); body.outputs],
            ..Fragment::default()
        })
        .collect();
    let owner = |element: usize| starts.partition_point(|&s| s <= element).checked_sub(1);
    for (i, element) in expander.flat.elements.into_iter().enumerate() {
        let fragment = owner(i).and_then(|f| Some((all.get_mut(f)?, starts.get(f)?)));
        if let Some((fragment, start)) = fragment
            && i >= start + 2
        {
            fragment.elements.push(element);
        }
    }
    for c in expander.flat.connections {
        let Some((f, &start)) = owner(c.from.element).and_then(|f| Some((f, starts.get(f)?))) else {
            continue;
        };
        let Some(fragment) = all.get_mut(f) else { continue };
        // A port of the fragment, or a port of one of its elements.
        let port = |p: PortRef| match (p.element - start).checked_sub(2) {
            Some(element) => Ok(PortRef { element, port: p.port }),
            None => Err(p.port),
        };
        match (port(c.from), port(c.to)) {
            (Ok(from), Ok(to)) => fragment.connections.push(Connection { from, to, span: c.span }),
            (Err(input), Ok(to)) => fragment.inputs.get_mut(input).into_iter().for_each(|i| i.push(to)),
            (Ok(from), Err(output)) => {
                fragment.outputs.get_mut(output).into_iter().for_each(|o| o.push(from))
            }
            (Err(input), Err(output)) => fragment.passages.push((input, output)),
        }
    }
    all
}

impl Expander<'_, '_, '_> {
    /// Adds an element that stands for the input or output of a fragment. Returns its node.
    fn pseudo_element(&mut self, span: Span) -> u32 {
        let node = self.net.node(self.flat.elements.len() as u32);
        self.flat.elements.push(Element {
            name: String::new(),
            class: "".into(),
            config: String::new(),
            span,
            config_span: span,
            config_map: Vec::new(),
            origin: Vec::new(),
        });
        node
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
