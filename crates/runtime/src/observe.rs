// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces ([`trace`]) and taps ([`tap`]) of a running router's packets.
//!
//! While a client observes packets, each worker has wrappers around its elements ([`probe`]). At all other times the
//! elements have no wrappers, so that observation costs nothing unless it is used.

pub(crate) mod log;
pub(crate) mod probe;
pub(crate) mod tap;
pub(crate) mod trace;

use castanet_element::HandlerError;
use castanet_graph::Graph;
use castanet_graph::filter::Filter;
use castanet_spec::{ArgCx, Names};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tap::{Point, Tap};
use trace::{PACKETS, Trace, Tracer};

/// The maximum number of traces, and of taps.
const CLIENTS: usize = 16;

/// The traces and taps of a router. Hot swaps do not end them.
#[derive(Default)]
pub(crate) struct Observers {
    /// 0 while nobody observes packets. Otherwise the number of the change that workers have to follow.
    generation: AtomicU32,
    /// The number of the last change.
    changes: Mutex<u32>,
    /// The number of workers that have wrapped their elements.
    wrapped: AtomicU32,
    pub(crate) tracer: Tracer,
    taps: Mutex<Vec<Arc<Tap>>>,
    /// Whether the thread runs that ends traces and taps of disconnected clients.
    is_guarded: Mutex<bool>,
}

/// The time between two checks for disconnected clients.
const GUARD: Duration = Duration::from_secs(5);

/// The words of a request: the name that the client gives to its trace or tap, and what follows.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, HandlerError> {
    text.parse().map_err(|_| HandlerError::from(format!("'{text}': expected a number")))
}

fn filter(text: &str, names: &Names) -> Result<Filter, HandlerError> {
    let cx = ArgCx { scope: "", names, origin: names.origin() };
    Filter::new(text, cx).map_err(|e| HandlerError::from(format!("filter '{text}': {e}")))
}

impl Observers {
    /// 0 while nobody observes packets. Changes whenever workers must wrap their elements again.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }
    /// Tells workers, in their next round, to wrap their elements again, or to take the wrappers off.
    fn change(&self) {
        // Of two changes at the same time, the last one must leave its generation.
        let mut changes = self.changes.lock();
        let is_used = self.tracer.len() > 0 || self.taps.lock().iter().any(|t| t.is_on());
        *changes = changes.wrapping_add(1).max(1);
        self.generation.store(if is_used { *changes } else { 0 }, Ordering::SeqCst);
    }
    /// Called when a worker has wrapped its elements (`1`) or has taken the wrappers off (`-1`).
    pub(crate) fn count_wrapped(&self, n: i32) {
        self.wrapped.fetch_add(n as u32, Ordering::SeqCst);
    }
    /// Whether at least this many workers have wrapped their elements. Packets are chosen only then, so that each element
    /// that a chosen packet meets has a wrapper.
    pub(crate) fn is_ready(&self, workers: usize) -> bool {
        self.wrapped.load(Ordering::Relaxed) as usize >= workers
    }
    /// The taps that still copy packets.
    pub(crate) fn taps(&self) -> Vec<Arc<Tap>> {
        self.taps.lock().iter().filter(|t| t.is_on()).cloned().collect()
    }

    /// Carries out a write to the global handler `trace`: `ID COUNT [FILTER]` or `ID end`.
    pub(crate) fn write_trace(self: &Arc<Self>, names: &Names, value: &str) -> Result<(), HandlerError> {
        let (id, rest) = first_word(value);
        match first_word(rest) {
            ("end", "") => self.tracer.end(id),
            (count, text) => {
                let wanted: u32 = number(count)?;
                if !(1..=PACKETS).contains(&wanted) {
                    return Err(format!("'{count}': expected a number from 1 to {PACKETS}").into());
                }
                let trace = Trace::new(id, wanted, filter(text, names)?);
                self.tracer.end(id);
                self.limit(self.tracer.len())?;
                self.tracer.begin(trace);
            }
        }
        self.change();
        self.guard();
        Ok(())
    }
    /// Carries out a write to the global handler `tap`: `ID POINT COUNT BYTES [FILTER]` or `ID end`.
    pub(crate) fn write_tap(
        self: &Arc<Self>,
        graph: &Graph,
        names: &Names,
        value: &str,
    ) -> Result<(), HandlerError> {
        let (id, rest) = first_word(value);
        let (point, rest) = first_word(rest);
        let mut taps = self.taps.lock();
        if (point, rest) == ("end", "") {
            taps.retain(|t| t.id != id);
        } else {
            let ((count, rest), point) = (first_word(rest), Point::parse(point)?);
            let (snap, text) = first_word(rest);
            point.places(graph)?;
            let tap = Tap::new(id, point, number(count)?, number(snap)?, filter(text, names)?);
            taps.retain(|t| t.id != id);
            self.limit(taps.len())?;
            taps.push(Arc::new(tap));
        }
        drop(taps);
        self.change();
        self.guard();
        Ok(())
    }
    /// Ends traces and taps whose clients are considered disconnected at the time `now`. Returns whether any are left.
    fn expire(&self, now: Instant) -> bool {
        let mut taps = self.taps.lock();
        let before = taps.len();
        taps.retain(|t| !t.is_abandoned(now));
        let (some, ended) = (!taps.is_empty(), taps.len() < before);
        drop(taps);
        if self.tracer.expire(now) || ended {
            self.change();
        }
        some || self.tracer.len() > 0
    }
    /// Starts the thread that ends traces and taps whose clients are disconnected, unless it runs. It ends with the last of them.
    fn guard(self: &Arc<Observers>) {
        let mut is_guarded = self.is_guarded.lock();
        if *is_guarded {
            return;
        }
        let observers = Arc::downgrade(self);
        let watch = move || {
            loop {
                std::thread::sleep(GUARD);
                let Some(observers) = observers.upgrade() else { return };
                let mut is_guarded = observers.is_guarded.lock();
                if !observers.expire(Instant::now()) {
                    *is_guarded = false;
                    return;
                }
            }
        };
        // Without the thread, a trace whose client has gone stays until the router ends.
        *is_guarded = std::thread::Builder::new().name("observers".into()).spawn(watch).is_ok();
    }
    fn limit(&self, used: usize) -> Result<(), HandlerError> {
        match used < CLIENTS {
            true => Ok(()),
            false => Err(format!("{CLIENTS} clients observe packets already").into()),
        }
    }

    /// Returns the lines of a trace. `parameters` are the name of the trace and the number of the first line.
    pub(crate) fn read_trace(&self, parameters: &str) -> Result<String, HandlerError> {
        let (id, from) = first_word(parameters);
        self.tracer.read(id, from).unwrap_or_else(|| Err(format!("no trace '{id}'").into()))
    }
    /// Returns the lines of a tap. `parameters` are the name of the tap and the number of the first line.
    pub(crate) fn read_tap(&self, parameters: &str) -> Result<String, HandlerError> {
        let (id, from) = first_word(parameters);
        let tap = self.taps.lock().iter().find(|t| t.id == id).cloned();
        tap.ok_or_else(|| HandlerError::from(format!("no tap '{id}'")))?.read(from)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_clients_that_have_gone_end() {
        let observers: Arc<Observers> = Arc::default();
        observers.write_trace(&Names::default(), "t 5 udp").unwrap();
        let (one, now) = (observers.generation(), Instant::now());
        assert!(one != 0 && observers.expire(now) && observers.generation() == one);
        assert!(!observers.expire(now + Duration::from_secs(60)));
        assert_eq!(observers.generation(), 0, "the wrappers are taken off");
        assert!(observers.read_trace("t 0").is_err());
    }
}
