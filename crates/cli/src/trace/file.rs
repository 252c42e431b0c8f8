// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet trace FILE`: runs a configuration, and follows its packets.

use super::{Follower, Trace, repeat};
use crate::classes::BuiltIn;
use crate::ctl::Failure;
use crate::load::{Loaded, Source, complain, load_in, reason, show};
use crate::run::build;
use castanet_element::Clock;
use castanet_lang::Unknown;
use castanet_runtime::Options;

/// Runs the configuration until its packets have been followed or it stops.
pub fn trace(a: &Trace) -> Result<(), Failure> {
    let held = a.privileges.start(None)?;
    let source = Source::file(&a.router, Vec::new())?;
    let available = BuiltIn::all().available(None);
    let Loaded { sources, graph, mut diagnostics, classes, text, .. } =
        load_in(&available, &source, Unknown::Error);
    let clock =
        if a.simtime { Clock::simulated(crate::run::simulated("1000000000")?) } else { Clock::real() };
    let options = Options { clock, config: text, ..Options::default() };
    let built = build(graph, classes, &sources, options, &mut diagnostics);
    show(&sources, &diagnostics, a.json);
    let mut router = built.ok_or(Failure::Said)?;
    held.give_up()?;
    let running = router.running().clone();
    // Reading the trace does not call workers, so that a router that is idle under simulated time may stop.
    running.stop_when_idle();
    let mut observed = running.clone();
    let mut follower = Follower::begin(&mut observed, a)?;
    let followed = std::thread::scope(|scope| {
        let runs = scope.spawn(|| router.run());
        let followed = repeat(a.seconds, || Ok(follower.poll()? || runs.is_finished()));
        if let Some(shared) = running.current() {
            shared.end();
        }
        match runs.join() {
            Ok(Ok(())) => followed,
            Ok(Err(e)) => Err(Failure::Here(format!("a worker could not be started: {}", reason(&e)))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    followed?;
    // The last packets may have ended since the last reading.
    follower.poll()?;
    follower.finish()?;
    for (who, what) in router.cleanup() {
        complain(&format!("{who}: {what}"));
    }
    Ok(())
}
