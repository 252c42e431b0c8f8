// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes a flat configuration: inserts elements on connections and takes elements out.

use super::alignment::Alignment;
use castanet_lang::{Connection, Element, Flat, PortRef};
use std::collections::{HashMap, HashSet};

/// A configuration that is being changed.
pub(super) struct Edit {
    flat: Flat,
    names: HashSet<String>,
    /// By input: the numbers of the connections that lead to it.
    into: HashMap<PortRef, Vec<usize>>,
}

impl Edit {
    pub(super) fn new(flat: Flat) -> Edit {
        let names = flat.elements.iter().map(|e| e.name.clone()).collect();
        let mut into: HashMap<PortRef, Vec<usize>> = HashMap::new();
        for (i, c) in flat.connections.iter().enumerate() {
            into.entry(c.to).or_default().push(i);
        }
        Edit { flat, names, into }
    }

    pub(super) fn into_flat(self) -> Flat {
        self.flat
    }

    /// Adds an element with a new name. It gets the position of the element `beside` in the source.
    fn add(&mut self, class: &str, config: String, beside: usize) -> usize {
        let mut n = self.flat.elements.len() + 1;
        let name = loop {
            let name = format!("{class}@click_align@{n}");
            if self.names.insert(name.clone()) {
                break name;
            }
            n += 1;
        };
        let span = self.flat.elements.get(beside).map(|e| e.span).unwrap_or_default();
        let class = class.into();
        let (config_span, config_map, origin) = (span, Vec::new(), Vec::new());
        self.flat.elements.push(Element { name, class, config, span, config_span, config_map, origin });
        self.flat.elements.len() - 1
    }

    /// Inserts an element with the arguments MODULUS and OFFSET before an input. Returns its declaration.
    pub(super) fn insert(&mut self, input: PortRef, class: &str, wanted: Alignment) -> String {
        let config = format!("{}, {}", wanted.modulus(), wanted.offset());
        let element = self.add(class, config.clone(), input.element);
        let port = PortRef { element, port: 0 };
        let moved = self.into.insert(input, vec![self.flat.connections.len()]).unwrap_or_default();
        let mut span = self.flat.elements.get(input.element).map(|e| e.span).unwrap_or_default();
        for i in &moved {
            if let Some(c) = self.flat.connections.get_mut(*i) {
                c.to = port;
                span = c.span;
            }
        }
        self.into.insert(port, moved);
        self.flat.connections.push(Connection { from: port, to: input, span });
        let name = self.flat.elements.get(element).map_or("", |e| &e.name);
        format!("{name} :: {class}({config})")
    }

    /// Adds an AlignmentInfo about these elements: for each, the alignment on its inputs. It replaces the one that an
    /// earlier transformation added.
    pub(super) fn inform(&mut self, elements: &[(String, Vec<Alignment>)]) {
        const CLASS: &str = "AlignmentInfo";
        let old = |e: &Element| e.class == CLASS && e.name.starts_with("AlignmentInfo@click_align@");
        let gone: Vec<bool> = self.flat.elements.iter().map(old).collect();
        if gone.contains(&true) {
            self.remove(&gone);
        }
        if elements.is_empty() {
            return;
        }
        let about = |(name, inputs): &(String, Vec<Alignment>)| {
            let each = inputs.iter().map(|a| format!(" {} {}", a.modulus(), a.offset()));
            format!("{name} {}", each.collect::<String>())
        };
        let config: Vec<String> = elements.iter().map(about).collect();
        self.add(CLASS, config.join(", "), 0);
    }

    /// Takes elements out, and joins what led to them with what they led to. An element stays if packets that reach it
    /// cannot reach any element that stays.
    pub(super) fn remove(&mut self, gone: &[bool]) {
        let is_gone = |p: PortRef| gone.get(p.element).copied().unwrap_or_default();
        // Connections that removed elements join form a net. The parent of each connection leads to the first one of its
        // net.
        let all = &self.flat.connections;
        let mut parent: Vec<usize> = (0..all.len()).collect();
        let mut first: HashMap<usize, usize> = HashMap::new();
        for (i, c) in all.iter().enumerate() {
            for end in [c.from, c.to].into_iter().filter(|&p| is_gone(p)) {
                let other = *first.entry(end.element).or_insert(i);
                let (a, b) = (root(&mut parent, i), root(&mut parent, other));
                if let Some(p) = parent.get_mut(a.max(b)) {
                    *p = a.min(b);
                }
            }
        }
        let mut nets: HashMap<usize, Vec<usize>> = HashMap::new();
        for i in 0..all.len() {
            nets.entry(root(&mut parent, i)).or_default().push(i);
        }
        let mut kept = vec![true; self.flat.elements.len()];
        for (slot, &gone) in kept.iter_mut().zip(gone) {
            *slot = !gone;
        }
        let mut connections = Vec::with_capacity(all.len());
        for i in 0..all.len() {
            let Some(net) = nets.get(&i) else { continue };
            let members = || net.iter().filter_map(|&n| all.get(n));
            let (mut from, mut to) = (members().map(|c| (c.from, c.span)), members().map(|c| c.to));
            let sources: Vec<_> = from.by_ref().filter(|f| !is_gone(f.0)).collect();
            let targets: Vec<_> = to.by_ref().filter(|&t| !is_gone(t)).collect();
            if sources.is_empty() != targets.is_empty() {
                for c in members() {
                    for p in [c.from, c.to] {
                        if let Some(k) = kept.get_mut(p.element) {
                            *k = true;
                        }
                    }
                }
                connections.extend(members());
                continue;
            }
            for &(from, span) in &sources {
                connections.extend(targets.iter().map(|&to| Connection { from, to, span }));
            }
        }
        self.flat.connections = connections;
        let flat = std::mem::take(&mut self.flat);
        *self = Edit::new(crate::undead::without(flat, &kept));
    }
}

/// The first connection of a net.
fn root(parent: &mut [usize], mut i: usize) -> usize {
    while let Some(&p) = parent.get(i).filter(|&&p| p != i) {
        let above = parent.get(p).copied().unwrap_or(p);
        if let Some(slot) = parent.get_mut(i) {
            *slot = above;
        }
        i = above;
    }
    i
}
