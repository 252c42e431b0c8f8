// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the ledger accounts of the elements of one configuration.

use crate::ledger::{Account, Ledger};
use crate::mail::{Accounts, Mail};
use crate::node::Body;
use crate::nodes::Nodes;
use crate::shared::Shared;
use castanet_element::CallError;
use castanet_element::run_loop::Core;
use castanet_spec::{Capability, LedgerRole, Reason, Workers};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What follows the names of elements that hot swaps removed.
const GONE: &str = " (swapped away)";

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
            element: info.name.to_string(),
            class: info.class.to_string(),
            config: shared.graph.config(element as usize).to_string(),
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
    let gone =
        former.iter().flat_map(|a| a.drops.iter().map(|(r, n)| (format!("{}{GONE}", a.element), *r, *n)));
    here.chain(gone).fold(String::new(), |out, (name, r, n)| out + &format!("{name}\t{r}\t{n}\n"))
}

impl Ledger {
    /// Returns the ledger that the workers of a running router have sent, each its part. Adds the accounts of elements
    /// that hot swaps removed.
    pub(crate) fn of_parts(shared: &Shared, parts: Vec<Accounts>) -> Ledger {
        let mut parts = parts.into_iter();
        let (mut accounts, mut waiting) = parts.next().unwrap_or_default();
        for (others, more) in parts {
            waiting += more;
            accounts.iter_mut().zip(&others).for_each(|(a, other)| a.add(other));
        }
        accounts.extend(shared.session.former.accounts());
        Ledger { accounts, waiting }
    }

    /// Returns the ledger as the text of the global handler `ledger`.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        for a in self.accounts.iter().filter(|a| !a.is_empty()) {
            let gone = if a.gone { GONE } else { "" };
            let counts = [a.entered, a.made, a.left, a.dropped(), a.held].map(|n| n.to_string()).join("\t");
            let _ = writeln!(out, "{}{gone}\t{}\t{counts}", a.element, a.class);
        }
        if self.waiting > 0 {
            let _ = writeln!(out, "-\t-\t0\t0\t0\t0\t{}", self.waiting);
        }
        out
    }
}

/// Returns the text of the global handler `queues`. `read` reads a handler of an element.
pub(crate) fn queues(shared: &Shared, mut read: impl FnMut(u32, &str) -> Option<String>) -> String {
    let is_queue = |e: &u32| shared.spec(*e).is_some_and(|s| s.has(Capability::Storage));
    (0..shared.graph.len() as u32).filter(is_queue).fold(String::new(), |mut out, e| {
        if let (Some(length), Some(capacity)) = (read(e, "length"), read(e, "capacity")) {
            let name = shared.graph.name(e as usize);
            let _ = writeln!(out, "{name}\t{}\t{}", length.trim(), capacity.trim());
        }
        out
    })
}

impl Nodes {
    /// Returns this worker's part of the ledger, while the router runs.
    pub(crate) fn accounts(&mut self, core: &mut Core) -> Accounts {
        self.add_kernel_counts(core);
        let shared = self.shared.clone();
        let here = core.worker() as usize;
        let accounts = (0..shared.graph.len() as u32).map(|e| {
            // An element that is running now, further up the call stack, cannot be asked.
            let held = match shared.workers_of(e).contains(&here) {
                true => self.with(core, e, |e, _| e.held()).and_then(Result::ok).unwrap_or(0),
                false => 0,
            };
            Account::of(&shared, e, std::iter::once(&*core), |w, _| if w == here { held } else { 0 })
        });
        let accounts = accounts.collect();
        (accounts, self.waiting() as u64)
    }
    /// Returns a table of the packets that the elements dropped, summed over all workers.
    pub(crate) fn all_drops(&mut self, core: &mut Core) -> Result<String, CallError> {
        self.add_kernel_counts(core);
        let mut all: Vec<_> = core.all_drops().collect();
        let shared = self.shared.clone();
        let here = core.worker() as usize;
        for w in (0..shared.inboxes.len()).filter(|&w| w != here) {
            all.extend(self.ask(core, w, Mail::Drops)?);
        }
        Ok(table(&shared, all))
    }

    /// Returns the ledger of all workers. The workers are asked one after the other, so that packets that move meanwhile
    /// may count twice or not at all.
    pub(crate) fn live_ledger(&mut self, core: &mut Core) -> Result<Ledger, CallError> {
        let mut parts = vec![self.accounts(core)];
        let shared = self.shared.clone();
        let here = core.worker() as usize;
        for w in (0..shared.inboxes.len()).filter(|&w| w != here) {
            parts.push(self.ask(core, w, Mail::Accounts)?);
        }
        Ok(Ledger::of_parts(&shared, parts))
    }
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
