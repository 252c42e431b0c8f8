// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second phase of a hot swap. While no worker runs, resources, counts and state move to the new router. Either all
//! of them move, or none.

use super::candidate::{Candidate, Done};
use super::cleaner::Cleaner;
use super::error::{HandoverError, SwapError};
use super::plan::Moves;
use crate::assembly::Assembly;
use crate::in_kernel;
use crate::mail::Mail;
use crate::pairs::Pairs;
use crate::running::Running;
use crate::shared::Shared;
use castanet_element::count::move_counts;
use castanet_element::{Cx, ElementError, Messages as _, Object};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an element of the new router takes over from an element of the old one.
#[derive(Clone, Copy)]
enum What {
    /// Open resources, such as files and devices.
    Over,
    /// Counts and state.
    State,
}

impl What {
    fn give(
        self,
        from: &mut (dyn Object + 'static),
        to: &mut (dyn Object + 'static),
        cx: &mut Cx<'_>,
    ) -> Result<(), ElementError> {
        match self {
            What::Over => to.take_over_from(from, cx),
            What::State => {
                move_counts(from, to);
                to.take_state_from(from, cx)
            }
        }
    }
}

/// Moves resources or state from element `o` of router `from` to element `e` of router `to`. Each replica of `o` gives
/// its part to a replica of `e`.
fn hand(from: &mut Assembly, o: u32, to: &mut Assembly, e: u32, what: What) -> Result<(), HandoverError> {
    let donors = from.shared.workers_of(o).to_vec();
    let heirs = to.shared.workers_of(e).to_vec();
    for (&d, &h) in donors.iter().zip(heirs.iter().cycle()) {
        let (Some(donor), Some(heir)) = (from.workers.get_mut(d), to.workers.get_mut(h)) else { continue };
        let done = donor.nodes.with(&mut donor.core, o, |old, _| {
            heir.nodes.with(&mut heir.core, e, |new, cx| what.give(old, new, cx))
        });
        match done {
            Some(Ok(Some(Ok(done)))) => done?,
            Some(Ok(Some(Err(error))) | Err(error)) => return Err(HandoverError::Panicked(error)),
            Some(Ok(None)) | None => {}
        }
    }
    Ok(())
}

/// Moves the resources and the state of all pairs in `moves` to the new router. After an error, moves everything back
/// and returns the error.
fn transfer(old: &mut Assembly, new: &mut Assembly, moves: &Moves) -> Result<(), SwapError> {
    let over = moves.over.iter().map(|&m| (m, What::Over));
    let state = moves.state.iter().map(|&m| (m, What::State));
    let all: Vec<((u32, u32), What)> = over.chain(state).collect();
    for (i, &((o, e), what)) in all.iter().enumerate() {
        let Err(why) = hand(old, o, new, e, what) else { continue };
        let element = new.shared.graph.declaration(e as usize);
        for &((o, e), what) in all.iter().take(i + 1).rev() {
            if let Err(error) = hand(new, e, old, o, what) {
                let who = old.shared.graph.declaration(o as usize);
                old.shared.message(&format!("{who}: could not take back what it had: {error}"));
            }
        }
        let before = old.shared.graph.name(o as usize);
        let before = (before != new.shared.graph.name(e as usize)).then(|| before.to_string());
        return Err(SwapError::State { element, before, why });
    }
    Ok(())
}

/// Passes on the requests that the old configuration has not carried out.
fn forward(old: &mut Assembly, new: &Assembly, pairs: &Pairs) {
    let asked = old.shared.requests.swap(0, Ordering::SeqCst);
    new.shared.requests.fetch_add(asked, Ordering::SeqCst);
    for w in &mut old.workers {
        // Drop the receiver, which closes the inbox. Later requests fail, and their callers repeat them on the new
        // configuration.
        w.nodes.collect_mail();
        w.nodes.mail = None;
        for m in w.nodes.inbox.drain(..) {
            // Forward only signals. Callers that wait for an answer repeat their requests. Wake-ups are not needed,
            // because all tasks of the new configuration get a turn.
            if let Mail::Signal(elements, signal) = m {
                let to = elements.into_iter().filter_map(|e| pairs.new_of(e));
                new.shared.signal_to(to.filter(|&e| new.shared.signals.contains(&(e, signal))), signal);
            }
        }
    }
}

/// Replaces the current configuration by a candidate. The workers of the current one must have returned. Reports an
/// error if the replacement fails.
pub(crate) fn commit(
    current: &mut Assembly,
    candidate: Candidate,
    running: &Arc<Running>,
    cleaner: &mut Cleaner<'_, '_>,
) {
    let Candidate { assembly: mut new, pairs, moves, plan, warnings, loader, since, reply } = candidate;
    for (w, old) in new.workers.iter_mut().zip(&current.workers) {
        w.core.continue_clock(&old.core);
    }
    in_kernel::add_counts(current);
    if let Err(error) = transfer(current, &mut new, &moves) {
        // Ignore errors of the cleanup: the configuration has never run, and the first error is the one to report.
        new.cleanup();
        // The candidate may have received packets from its devices. Add the candidate's counts of these packets to the
        // ledger of the current router.
        current.inherit_ledger(&mut new, &pairs.reversed());
        new.settle_ledger();
        current.shared.go_on();
        return Candidate::tell(reply, &running.session, Err(error));
    }
    let reopened = reopened(&current.shared, &new.shared, &moves);
    let errors = current.cleanup_of(|e| reopened.contains(&e));
    in_kernel::hand_over(current, &mut new, &pairs);
    new.inherit_ledger(current, &pairs);
    std::mem::swap(current, &mut new);
    let mut old = new;
    running.succeed(&old.shared.clone(), &current.shared, || forward(&mut old, current, &pairs));
    let done = Done { plan, standstill: since.elapsed(), warnings };
    let (shared, session) = (current.shared.clone(), running.session.clone());
    cleaner.retire(move || {
        let errors = errors.into_iter().chain(old.cleanup_of(|e| !reopened.contains(&e)));
        for (who, what) in errors {
            session.print(&format!("{who}: {what}"));
        }
        old.settle_ledger();
        drop(old);
        loader.swapped(&shared);
        if let Some(text) = done.plan.pairing() {
            session.print(&text);
        }
        Candidate::tell(reply, &session, Ok(done));
    });
}

/// Returns the elements of the old router that must be cleaned up before the new router runs. These elements have a
/// file open that the new router does not take over but opens itself, for example to read it.
fn reopened(old: &Shared, new: &Shared, moves: &Moves) -> HashSet<u32> {
    // The key of a file contains its absolute path, but a configuration may use a relative path. So the caller also
    // searches the configuration strings for the last component of the path. A chance match closes a file earlier than
    // necessary, which does no harm.
    fn paths<'a>(key: &'a (&'static str, String)) -> impl Iterator<Item = &'a str> {
        key.1.split(' ').filter(|word| word.starts_with('/'))
    }
    let opened: HashSet<&str> = new.held.keys().flat_map(paths).collect();
    let named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        new.graph.flat.elements.iter().any(|e| e.config.contains(name))
    };
    let held = old.held.iter().filter(|(key, _)| paths(key).any(|p| opened.contains(p) || named(p)));
    let given: HashSet<u32> = moves.over.iter().map(|m| m.0).collect();
    held.flat_map(|(_, elements)| elements).copied().filter(|e| !given.contains(e)).collect()
}
