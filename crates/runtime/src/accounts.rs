// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the ledger accounts of the elements of one configuration.

use crate::ledger::{Account, Ledger};
use crate::node::Body;
use crate::nodes::Nodes;
use crate::shared::Shared;
use castanet_element::run_loop::Core;
use castanet_spec::{LedgerRole, Reason, Workers};
use std::collections::BTreeMap;

impl Account {
    /// Returns the ledger account of an element. `held(worker, element)` returns how many packets the element's replica
    /// on that worker holds.
    pub(crate) fn of<'a>(
        shared: &Shared,
        element: u32,
        cores: impl Iterator<Item = &'a Core>,
        held: impl Fn(usize, u32) -> u64,
    ) -> Account {
        let info = shared.info.get(element as usize).cloned().unwrap_or_default();
        let spec = shared.spec(element);
        let mut account = Account {
            element: info.name,
            class: info.class,
            config: info.config,
            ledger_role: spec.map_or(LedgerRole::empty(), |s| s.ledger_role),
            held: held_by(shared, element, held),
            ..Account::default()
        };
        for core in cores {
            core.entries_of(element).for_each(|(entry, n)| account.enter(entry, n));
            core.drops_of(element).for_each(|(reason, n)| account.drop(spec, reason, n));
        }
        account
    }
}

/// Returns how many packets an element holds, summed over its replicas. If the replicas share their state, they all
/// report the same packets, so only the first replica is counted.
pub(crate) fn held_by(shared: &Shared, element: u32, held: impl Fn(usize, u32) -> u64) -> u64 {
    let share = shared.spec(element).is_some_and(|s| s.workers == Workers::Share);
    let workers = shared.workers_of(element).iter().take(if share { 1 } else { usize::MAX });
    workers.map(|&w| held(w, element)).sum()
}

impl Ledger {
    /// Returns the ledger with the accounts of all elements of a router. `held(worker, element)` returns how many
    /// packets the element's replica on that worker holds. `waiting` is the number of packets on edges.
    pub(crate) fn new<'a>(
        shared: &Shared,
        cores: impl Iterator<Item = &'a Core> + Clone,
        held: impl Fn(usize, u32) -> u64,
        waiting: usize,
    ) -> Ledger {
        let accounts = (0..shared.graph.len() as u32).map(|e| Account::of(shared, e, cores.clone(), &held));
        Ledger { accounts: accounts.collect(), waiting: waiting as u64 }
    }
}

/// Returns the drops of all elements as text. Each line is an element, a reason and the number of packets, separated
/// by tabs.
pub(crate) fn table(shared: &Shared, drops: Vec<(u32, Reason, u64)>) -> String {
    let mut all: BTreeMap<(u32, Reason), u64> = BTreeMap::new();
    for (e, reason, n) in drops {
        if !shared.spec(e).is_some_and(|s| s.ends.contains(&reason)) {
            *all.entry((e, reason)).or_default() += n;
        }
    }
    let here = all.into_iter().map(|((e, r), n)| (shared.graph.name(e as usize).to_string(), r, n));
    let former = shared.session.former.accounts();
    let gone = former
        .iter()
        .flat_map(|a| a.drops.iter().map(|(r, n)| (format!("{} (swapped away)", a.element), *r, *n)));
    here.chain(gone).fold(String::new(), |out, (name, r, n)| out + &format!("{name}\t{r}\t{n}\n"))
}

impl Nodes {
    /// Returns how many packets the replica of an element on this worker holds.
    pub(crate) fn held(&self, element: u32) -> u64 {
        let Some(&(n, member)) = self.places.get(element as usize) else { return 0 };
        match self.nodes.get(n as usize).map(|n| &n.body) {
            Some(Body::Chain(members)) => members.get(member as usize).map_or(0, |m| m.action.held()),
            Some(Body::Element(e) | Body::Reaching(e, _)) => e.held(),
            Some(Body::Locked(lock, _)) => lock.wait().instance.common_ref().held(),
            Some(Body::Busy | Body::Meeting(_)) | None => 0,
        }
    }
    /// Returns the number of packets that an element has emitted and that still wait on its edges.
    pub(crate) fn waiting_of(&self, element: u32) -> u64 {
        let Some(node) = self.node_of(element).and_then(|n| self.nodes.get(n)) else { return 0 };
        let edges = self.edges.iter().skip(node.base as usize).take(node.count as usize);
        edges.filter(|e| e.from == element).map(|e| e.batch.len() as u64).sum()
    }
}
