// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles paths when packets have crossed an edge for some time ([`crate::paths`]).

mod network;

use crate::kernel::REASONS;
use crate::node::{Body, NONE};
use crate::nodes::Nodes;
use crate::paths::{Account, Exit, PATIENCE, Path, Paths, TRIES, TRY};
use castanet_element::run_loop::Edge;
use castanet_kernel::{Point, Region, State};
use castanet_packet::Batch;
use network::edge_of;
pub(crate) use network::{Elements, Local};
use std::sync::Arc;

impl Nodes {
    /// Counts a batch on an edge that has no path yet. Returns the number of its path if it has one now.
    #[cold]
    pub(crate) fn approach(&mut self, x: usize, number: u32) -> Option<usize> {
        let edge = self.edges.get(x)?;
        let (node, port, from) = (edge.node, edge.port, edge.from);
        if number > TRY {
            self.edges.get_mut(x)?.path = number - 1;
            return None;
        }
        // The node may be running, or packets may be on their way to others that they wait for. Then the next batch decides.
        let is_busy = self.nodes.get(node as usize).is_some_and(|n| matches!(n.body, Body::Busy));
        let Some((element, input)) = self.input_of(node, port) else {
            self.edges.get_mut(x)?.path = if is_busy { TRY } else { NONE };
            return None;
        };
        if self.node_of(element) != Some(node as usize) {
            return None;
        }
        let known = self.paths.list.iter().position(|p| (p.element, p.input) == (element, input));
        let path = match (known, assumed(&self.current)) {
            (Some(path), _) => Some(path as u32),
            // The first packet is special. Another one will come.
            (None, None) => Some(TRY + PATIENCE),
            (None, Some(state)) => {
                let account = Arc::new(Account::default());
                let path = Path::new(account.clone(), (element, input), (node, from));
                self.compile_path(path, state).map(|path| {
                    self.shared.path_accounts.lock().push(account);
                    self.paths.list.push(path);
                    self.paths.list.len() as u32 - 1
                })
            }
        };
        self.edges.get_mut(x)?.path = path.unwrap_or(NONE);
        path.filter(|p| *p < TRY).map(|p| p as usize)
    }

    /// Counts a batch that begins a path without code, and compiles the path when it is time.
    #[cold]
    pub(crate) fn approach_again(&mut self, number: usize) {
        let is_dividing = self.paths.is_dividing();
        let Some(path) = self.paths.list.get_mut(number) else { return };
        path.wait = path.wait.saturating_sub(1);
        // Packets that wait have the ends of the former code.
        if path.wait > 0 || path.tries > TRIES || is_dividing {
            return;
        }
        let Some(state) = assumed(&self.current) else { return path.wait = PATIENCE };
        let again = path.anew();
        match (self.compile_path(again, state), self.paths.list.get_mut(number)) {
            (Some(again), Some(path)) => *path = again,
            (None, Some(path)) => path.tries = TRIES + 1,
            (_, None) => {}
        }
    }

    /// Compiles a path for packets in this state. None if the first element cannot be compiled.
    fn compile_path(&mut self, path: Path, state: State) -> Option<Path> {
        let compiler = self.paths.compiler.clone()?;
        let start = Point { element: path.element, input: path.input, state };
        let region = Region::compile(&Local(self), &start, REASONS).ok()?;
        let members: Vec<u32> = region.fragments().iter().map(|f| f.element()).collect();
        let is_met = |node: u32| self.quanta.places.iter().any(|p| p.node == node);
        let node_of = |e: &u32| self.node_of(*e).map_or(NONE, |n| n as u32);
        let meets = members.iter().filter(|e| **e != path.element).any(|e| is_met(node_of(e)));
        let exits: Vec<Exit> =
            region.ends().iter().map(|end| self.exit(end, path.from)).collect::<Option<_>>()?;
        // The path passes these edges, so no path of its own needs to begin there.
        for edge in self.edges.iter_mut().filter(|e| e.path != NONE && members.contains(&e.from)) {
            let to = self.nodes.get(edge.node as usize).map_or(NONE, |n| n.me);
            if members.contains(&to) && to != path.element {
                edge.path = NONE;
            }
        }
        let counters = vec![0; region.counters().len()].into();
        let alone_ends =
            exits.iter().take(64).enumerate().filter(|e| e.1.is_alone()).fold(0, |bits, e| bits | 1 << e.0);
        path.account.set_members(&members);
        let job = compiler.job(region);
        job.want();
        Some(Path {
            job: Some(job),
            meets,
            exits: exits.into(),
            alone_ends,
            counters,
            members,
            begun: 0,
            alone: 0,
            ..path
        })
    }

    /// Returns the exit for an end of a region. None if the router has no such element.
    fn exit(&mut self, end: &castanet_kernel::region::End, from: u32) -> Option<Exit> {
        let Some(to) = &end.to else { return Some(Exit::Drop) };
        let alone = end.from.is_none();
        if let Some((element, output)) = end.from
            && let Some(edge) = edge_of(self, element, output)
        {
            return Some(Exit::Edge { edge: edge as u32, alone });
        }
        let &(node, member) = self.places.get(to.element as usize).filter(|p| p.0 != NONE)?;
        let port = match self.nodes.get(node as usize)?.body {
            Body::Chain(_) => member,
            _ => to.input,
        };
        let from = end.from.map_or(from, |f| f.0);
        let new = self.edges.len() as u32;
        let edge = *self.paths.made.entry((node, port, from, alone)).or_insert(new);
        if edge == new {
            // A path may continue where another one has become too long.
            let path = self.paths.compiler.as_deref().filter(|_| !alone).map_or(NONE, Paths::first);
            self.edges.push(Edge { node, port, from, path, ..Edge::default() });
        }
        Some(Exit::Edge { edge, alone })
    }

    /// Returns the element and the input that a place in a node stands for.
    fn input_of(&self, node: u32, port: u32) -> Option<(u32, u32)> {
        match &self.nodes.get(node as usize)?.body {
            Body::Chain(members) => Some((members.get(port as usize)?.me, 0)),
            Body::Element(_) => Some((self.nodes.get(node as usize)?.me, port)),
            Body::Meeting(_) => {
                let place = self.quanta.places.iter().find(|p| p.waiting == node)?;
                self.input_of(place.node, port)
            }
            Body::Reaching(..) | Body::Locked(..) | Body::Busy => None,
        }
    }
}

/// Returns the state of packets like the first of a batch, as far as code relies on it. None if no code is made for such packets.
fn assumed(batch: &Batch) -> Option<State> {
    let packet = batch.as_slice().first()?;
    if !packet.is_plain() {
        return None;
    }
    let network = match packet.network_offset() {
        None => None,
        Some(at) => Some((i32::try_from(at).ok()?, u32::try_from(packet.network_header_length()).ok()?)),
    };
    if network.is_some_and(|(at, _)| at < 0) {
        return None;
    }
    let annotations = [None; castanet_kernel::ANNOTATIONS];
    // Somebody may have changed the first byte of the header.
    let rewritten = network.is_some();
    Some(State { mac: None, network, rewritten, annotations, ..State::received() })
}
