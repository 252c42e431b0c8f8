// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppressor: passes packets through ports that can be closed (suppressed).

use super::port_flags::PortFlags;
use crate::sched::own_note::OwnNote;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes packets from each input to the output of the same number, unless that port is suppressed.
///
/// Packets that are pushed to a suppressed port are dropped. A pull through a suppressed port returns no packet, so
/// packets stay upstream. The task that pulls sleeps until a port that is not suppressed has packets. All ports are
/// active at first. An EtherSpanTree that names the Suppressor suppresses ports, and so do the handlers `active0`,
/// `active1`, ...
///
/// # Ports
/// Inputs and outputs 0, 1, ...: packets. There are as many inputs as outputs.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> [0] s :: Suppressor [0] -> Discard;
/// Idle -> [1] s [1] -> Discard;
/// DriverManager(write s.active1 false, pause, print $(s.active0) $(s.active1), stop);
/// ```
#[derive(Class)]
#[class(name = "Suppressor", ports = "-/=", processing = "a/a", flow = "#/#", packets = "any/same")]
#[class(takes_state = "which ports are active")]
#[class(workers = share, drops(Suppressed), build, lifecycle, handlers, kernel, capabilities(EmptyNotifier))]
pub struct Suppressor {
    suppressed: Arc<[AtomicBool]>,
    /// Gives other elements access to the flags in `suppressed` and to the notifier of this element.
    flags: Arc<PortFlags>,
    /// For each port, the signal of the notifiers upstream; `None` if packets are pushed.
    upstream: Vec<Option<Signal>>,
    note: OwnNote,
}

impl Build for Suppressor {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let flags = cx.share(PortFlags::default);
        let upstream = (0..cx.inputs).map(|i| (!cx.is_push_input(i)).then(Signal::default)).collect();
        Ok(Suppressor { suppressed: flags.of(cx.inputs), flags, upstream, note: OwnNote::default() })
    }
}

impl Suppressor {
    #[inline(always)]
    fn is_suppressed(&self, port: usize) -> bool {
        self.suppressed.get(port).is_some_and(|s| s.load(Ordering::Relaxed))
    }
    /// Whether there may be packets to pull through a port that is not suppressed.
    fn has_something(&self, cx: &Cx<'_>) -> bool {
        let open = |(signal, flag): (&Option<Signal>, &AtomicBool)| {
            signal.as_ref().is_some_and(|s| !flag.load(Ordering::SeqCst) && cx.is_on(s))
        };
        self.upstream.iter().zip(self.suppressed.iter()).any(open)
    }
    #[cold]
    fn found_empty(&self, cx: &mut Cx<'_>) {
        self.note.found_empty(|cx| self.has_something(cx), cx);
    }
}

impl Element for Suppressor {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.is_suppressed(port) {
            cx.drop_all(batch, Reason::Suppressed);
        } else {
            cx.forward(port, batch);
        }
    }
    #[inline]
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        if self.is_suppressed(port) {
            cx.drop(p, Reason::Suppressed);
        } else {
            cx.emit(port, p);
        }
    }
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        if !self.is_suppressed(port) {
            cx.pull(port, max, into);
        }
        if into.len() == before && max > 0 {
            self.found_empty(cx);
        }
    }
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let p = if self.is_suppressed(port) { None } else { cx.pull_one(port) };
        if p.is_none() {
            self.found_empty(cx);
        }
        p
    }
    // When a notifier upstream turns on, it schedules every element that subscribed to it. So `task` is called although
    // the class has no task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.note.look(self.has_something(cx), cx);
        Turn::Sleep
    }
}

#[handlers]
impl Suppressor {
    /// Whether port N is active.
    #[read(each = self.suppressed.len())]
    fn active(&self, port: usize) -> bool {
        !self.is_suppressed(port)
    }
    /// Makes port N active or suppresses it; packets pass only through active ports.
    #[write(each = self.suppressed.len(), checkbox)]
    fn set_active(&mut self, port: usize, active: bool, cx: &mut Cx<'_>) {
        if let Some(s) = self.suppressed.get(port) {
            s.store(!active, Ordering::SeqCst);
        }
        self.note.look(self.has_something(cx), cx);
    }
    /// Makes all ports active.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.suppressed.iter().for_each(|s| s.store(false, Ordering::SeqCst));
        self.note.look(self.has_something(cx), cx);
    }
}

impl InKernel for Suppressor {
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered {
        let port = input as usize;
        if self.is_suppressed(port) {
            return Err("its port is suppressed".into());
        }
        code.next(port);
        Ok(())
    }
}

impl Lifecycle for Suppressor {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        for (port, signal) in self.upstream.iter_mut().enumerate() {
            if let Some(signal) = signal {
                *signal = cx.upstream(port);
            }
        }
        self.note.initialise(true, cx);
        self.flags.note(self.note.note());
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        // If a spanning tree has already set flags in the new router, keep them.
        if !self.suppressed.iter().any(|s| s.load(Ordering::Relaxed)) {
            for (mine, theirs) in self.suppressed.iter().zip(old.suppressed.iter()) {
                mine.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn pushes() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<Suppressor>::with_ports("", 3, 3).unwrap();
            kit.write("active1", "false").unwrap();
            let mut out = Vec::new();
            for port in 0..3 {
                out.extend(kit.push(port, (0..n).map(|_| packet(b"x"))));
            }
            let want: Vec<_> = (0..n).map(|_| 0).chain((0..n).map(|_| 2)).collect();
            assert_eq!(out.iter().map(|o| o.0).collect::<Vec<_>>(), want);
            assert_eq!((kit.dropped(Reason::Suppressed), kit.all_dropped()), (n, n));
            assert_eq!(["active0", "active1"].map(|h| kit.read(h).unwrap()), ["true", "false"]);
            kit.write("reset", "").unwrap();
            assert_eq!(kit.push(1, [packet(b"y")]).len(), 1);
        }
    }

    #[test]
    fn pulls() {
        let mut kit = Kit::<Suppressor>::with_ports("", 2, 2).unwrap();
        (0..4).for_each(|_| kit.supply(1, packet(b"x")));
        assert_eq!((kit.pull(0, 9).len(), kit.pull(1, 2).len()), (0, 2));
        kit.write("active1", "no").unwrap();
        assert!(kit.pull(1, 9).is_empty());
        assert!(kit.with(|e, cx| e.pull_one(1, cx)).is_none());
        kit.write("active1", "yes").unwrap();
        assert!(kit.with(|e, cx| e.pull_one(1, cx)).is_some());
        assert_eq!((kit.pull(1, 9).len(), kit.all_dropped()), (1, 0), "what is suppressed stays");
    }

    #[test]
    fn pullers_sleep_while_all_that_has_packets_is_suppressed() {
        let mut kit = Kit::<Suppressor>::with_ports("", 2, 2).unwrap();
        // The kit makes agnostic ports push, so the signals of pullers are set here.
        kit.element.upstream = (2..4).map(|note| Some(Signal::new(vec![note], false))).collect();
        let on = |kit: &Kit<Suppressor>| kit.note(Capability::EmptyNotifier);
        (0..4).for_each(|_| kit.supply(0, packet(b"x")));
        assert!(on(&kit) && kit.pull(0, 1).len() == 1);
        kit.write("active0", "false").unwrap();
        assert!(kit.pull(0, 1).is_empty() && !on(&kit), "the packets are behind a suppressed port");
        kit.supply(0, packet(b"y"));
        kit.task();
        assert!(!on(&kit), "more of them");
        kit.write("active0", "true").unwrap();
        assert!(on(&kit) && kit.pull(0, 1).len() == 1);
        // Another element, such as EtherSpanTree, sets and clears the flag.
        kit.with(|e, _| e.flags.set(0, true));
        assert!(kit.with(|e, cx| e.pull_one(0, cx)).is_none() && !on(&kit));
        kit.with(|e, cx| {
            assert!(e.flags.set(0, false));
            e.flags.to_wake().into_iter().for_each(|note| cx.set_note(note));
        });
        assert!(on(&kit));
        kit.write("active0", "false").unwrap();
        kit.pull(0, 1);
        kit.write("reset", "").unwrap();
        assert!(on(&kit));
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<Suppressor>::with_ports("", 2, 2).unwrap();
        assert_eq!(kit.element.own_handlers().len(), 2);
        for bad in ["active2", "active", "active-1", "activeX", "x"] {
            assert!(kit.read(bad).is_err() && kit.write(bad, "true").is_err(), "{bad}");
        }
        assert!(kit.write("active0", "perhaps").is_err());
        assert!(Kit::<Suppressor>::with_ports("1", 1, 1).is_err());
        assert!(Kit::<Suppressor>::with_ports("", 0, 0).is_ok());
    }
}
