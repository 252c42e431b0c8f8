// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that provoke failures of shared libraries: packets in both directions, panics, objects that outlive
//! the library.
#![forbid(unsafe_code)]

use castanet_element::prelude::*;

/// Creates packets from the current thread's pool.
#[derive(Class)]
#[class(name = "ProbeSource", ports = "0/1", processing = "h/h", packets = "/any", workers = exclusive, task)]
#[class(build, effects(stops), ledger(enters))]
pub struct ProbeSource {
    args: SourceArgs,
    made: u32,
}

/// Arguments of ProbeSource.
#[derive(Args)]
pub struct SourceArgs {
    /// The number of packets.
    limit: u32,
}

impl Build for ProbeSource {
    fn build(args: SourceArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(ProbeSource { args, made: 0 })
    }
}

impl Element for ProbeSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        for _ in 0..cx.limit().min(32) {
            if self.made == self.args.limit {
                cx.stop(1);
                return Turn::Sleep;
            }
            self.made += 1;
            match Packet::copy_of(&self.made.to_be_bytes()) {
                Some(p) => {
                    cx.entered(1);
                    cx.emit(0, p);
                }
                None => return Turn::Again,
            }
        }
        Turn::Again
    }
}

/// Keeps copies of the last 100 packets. A copy shares the buffer of its packet.
#[derive(Class)]
#[class(name = "ProbeKeep", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(lifecycle, handlers, ledger(makes, holds), drops(Consumed))]
pub struct ProbeKeep {
    kept: Vec<Packet>,
    /// Packets seen.
    #[count(unit = "packets")]
    seen: Count,
}

#[handlers]
impl ProbeKeep {
    /// The number of packets that are kept.
    #[read(name = "kept", unit = "packets")]
    fn length(&self) -> usize {
        self.kept.len()
    }
}

impl Lifecycle for ProbeKeep {
    fn held(&self) -> u64 {
        self.kept.len() as u64
    }
}

impl Element for ProbeKeep {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for mut p in batch.drain() {
            self.seen.add(1);
            if let Some(copy) = p.share() {
                cx.made(1);
                self.kept.push(copy);
            }
            cx.emit(0, p);
        }
        let many = self.kept.len().saturating_sub(100);
        self.kept.drain(..many).for_each(|p| cx.drop(p, Reason::Consumed));
    }
}

/// Panics at the place given by its argument.
#[derive(Class)]
#[class(name = "ProbePanic", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
#[class(build, lifecycle, handlers)]
pub struct ProbePanic {
    args: PanicArgs,
}

/// Arguments of ProbePanic.
#[derive(Args)]
pub struct PanicArgs {
    /// The place: `build`, `initialise`, `packet` or `handler`.
    place: Word,
}

impl ProbePanic {
    fn at(&self, place: &str) {
        assert!(self.args.place.0 != place, "the probe panics at {place}");
    }
}

impl Build for ProbePanic {
    fn build(args: PanicArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let probe = ProbePanic { args };
        probe.at("build");
        Ok(probe)
    }
}

#[handlers]
impl ProbePanic {
    /// Panics.
    #[read]
    fn boom(&self) -> &'static str {
        self.at("handler");
        ""
    }
}

impl Lifecycle for ProbePanic {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.at("initialise");
        Ok(())
    }
}

impl Action for ProbePanic {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.at("packet");
        Verdict::Next
    }
}

castanet_element::package! {
    element::<ProbeSource>(),
    element::<ProbeKeep>(),
    action::<ProbePanic>(),
}
