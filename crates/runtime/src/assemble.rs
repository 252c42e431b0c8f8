// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second phase of building: elements that were built are linked and initialised.

use crate::assembly::Assembly;
use crate::errors::failed;
use crate::initialise::initialise;
use crate::link::link;
use crate::prepare::Prepared;
use crate::shared::Shared;
use crate::worker::Worker;
use castanet_element::Core;
use castanet_lang::Diagnostic;
use std::collections::HashSet;

/// Links and initialises elements that were built. `inherited` returns the elements that take over open
/// resources from an old router.
pub(crate) fn assemble(
    prepared: Prepared,
    inherited: impl FnOnce(&Shared) -> HashSet<u32>,
) -> Result<(Assembly, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Prepared { built, shared, clock, batch, sleepers, mails, mut diagnostics } = prepared;
    let back = shared.graph.back_edges();
    let mut assembly = Assembly::new(shared.clone());
    for (w, ((instances, sleeper), mail)) in built.workers.into_iter().zip(sleepers).zip(mails).enumerate() {
        let nodes = link(&shared, instances, &back, &built.effects);
        let mut core = Core::new(
            shared.info.clone(),
            shared.names.clone(),
            shared.workshop.notes.clone(),
            shared.clone(),
            clock.clone(),
        );
        core.worker = w as u32;
        assembly.workers.push(Worker::new(nodes, core, sleeper, mail, batch));
    }
    let inherited = inherited(&shared);
    initialise(&mut assembly, &inherited, &mut diagnostics);
    if failed(&diagnostics) {
        // Close what was opened. Errors of the cleanup are dropped, because the first error is what counts.
        assembly.cleanup();
        return Err(diagnostics);
    }
    Ok((assembly, diagnostics))
}
