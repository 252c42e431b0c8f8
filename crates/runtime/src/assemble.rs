// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second phase of building a router: links and initialises elements that were built.

use crate::assembly::Assembly;
use crate::errors::failed;
use crate::initialise::initialise;
use crate::link::link;
use crate::lock::Locked;
use crate::prepare::Prepared;
use crate::shared::Shared;
use crate::worker::Worker;
use castanet_element::Instance;
use castanet_element::run_loop::Core;
use castanet_graph::placement::Mode;
use castanet_lang::Diagnostic;
use std::collections::HashSet;
use std::sync::Arc;

/// Gives a lock to each locked element (an element that several workers run), and removes it from the element list of
/// its home worker.
fn lock(shared: &Shared, workers: &mut [Vec<(usize, Instance)>]) -> Vec<Arc<Locked>> {
    let is_locked = |e: usize| matches!(shared.placement.mode(e), Mode::Locked(_));
    let each = workers.iter_mut().enumerate().flat_map(|(home, list)| {
        let (locked, own): (Vec<_>, Vec<_>) = list.drain(..).partition(|x| is_locked(x.0));
        *list = own;
        locked.into_iter().map(move |(e, instance)| Locked::new(e as u32, home, instance))
    });
    each.collect()
}

/// Links and initialises elements that were built. `inherited` returns the elements that take over open resources from
/// the previous router.
pub(crate) fn assemble(
    prepared: Prepared,
    inherited: impl FnOnce(&Shared) -> HashSet<u32>,
) -> Result<(Assembly, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Prepared { built, shared, clock, batch, sleepers, mails, mut diagnostics } = prepared;
    let back = shared.graph.back_edges();
    let mut assembly = Assembly::new(shared.clone());
    let mut workers = built.workers;
    let locked = lock(&shared, &mut workers);
    for (w, ((instances, sleeper), mail)) in workers.into_iter().zip(sleepers).zip(mails).enumerate() {
        let here = locked.iter().filter(|l| shared.placement.workers_of(l.element as usize).contains(&w));
        let nodes = link(&shared, instances, here.cloned().collect(), &back, &built.effects);
        let core = Core::new(
            shared.info.clone(),
            shared.names.clone(),
            shared.build_state.notes.clone(),
            shared.clone(),
            clock.clone(),
        )
        .on_worker(w as u32);
        assembly.workers.push(Worker::new(nodes, core, sleeper, mail, batch));
    }
    let inherited = inherited(&shared);
    initialise(&mut assembly, &inherited, &mut diagnostics);
    if failed(&diagnostics) {
        // Close the files and devices that were opened. Ignore errors of the cleanup, because the first error is the
        // one to report.
        assembly.cleanup();
        return Err(diagnostics);
    }
    Ok((assembly, diagnostics))
}
