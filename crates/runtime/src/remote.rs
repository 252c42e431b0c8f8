// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handler calls from threads that are not workers. Each call goes to the workers of the element. If a swap
//! comes first, the call is repeated on the new configuration.

use crate::mail::Mail;
use crate::merge::merge;
use crate::running::Running;
use crate::shared::Shared;
use crate::swap::error::SwapError;
use crate::swap::loader::Style;
use crate::swap::prepare::BY_HANDLER;
use castanet_element::CallError;
use castanet_element::remote::{Listener, Remote};
use castanet_spec::Origin;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The interval at which a thread that waits for a worker checks that the worker still runs.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a thread that waits for a worker's answer spins before it sleeps.
const SPIN: Duration = Duration::from_micros(150);

/// Why a worker gave no answer.
enum Silent {
    /// The router has stopped.
    Stopped,
    /// The configuration was swapped before the worker read the request.
    Swapped,
}

/// Sends a request to a worker and waits for the answer.
fn ask<T>(
    shared: &Shared,
    worker: usize,
    mail: impl FnOnce(SyncSender<Result<T, CallError>>) -> Mail,
) -> Result<Result<T, CallError>, Silent> {
    let (tx, rx) = sync_channel(1);
    let Some(inbox) = shared.inboxes.get(worker) else { return Err(Silent::Stopped) };
    inbox.send(mail(tx));
    // Spin first: a busy worker answers after a few turns of tasks, and waking this thread would cost the
    // worker more than the answer.
    let soon = Instant::now() + SPIN;
    while Instant::now() < soon {
        match rx.try_recv() {
            Ok(answer) => return Ok(answer),
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    loop {
        match rx.recv_timeout(PATIENCE) {
            Ok(answer) => return Ok(answer),
            Err(_) if shared.is_stopped() => return Err(Silent::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Silent::Swapped),
        }
    }
}

impl Running {
    /// Calls the current configuration. If it is swapped meanwhile, repeats the call on the next one.
    fn call<T>(
        &self,
        element: Option<&str>,
        f: impl Fn(&Arc<Shared>, Option<u32>) -> Result<Result<T, CallError>, Silent>,
    ) -> Result<T, CallError> {
        loop {
            let gone = || CallError::Missing(SwapError::Stopped.to_string());
            let shared = self.current().ok_or_else(gone)?;
            let e = match element {
                None => None,
                Some(name) => {
                    let none = || CallError::Missing(format!("no element named '{name}'"));
                    Some(shared.find(name).ok_or_else(none)?)
                }
            };
            match f(&shared, e) {
                Ok(answer) => return answer,
                Err(Silent::Stopped) => return Err(gone()),
                // The old workers stop answering shortly before the next configuration becomes current.
                Err(Silent::Swapped) => std::thread::yield_now(),
            }
        }
    }
}

impl Remote for Running {
    fn elements(&self) -> Vec<String> {
        let Some(shared) = self.current() else { return Vec::new() };
        (0..shared.graph.len()).map(|e| shared.graph.name(e).to_string()).collect()
    }

    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError> {
        self.call(element, |shared, e| {
            let read = |worker| {
                let (handler, parameters) = (handler.to_string(), parameters.to_string());
                let from = Origin::Anonymous;
                ask(shared, worker, |reply| Mail::Read {
                    from,
                    urgent: false,
                    element: e,
                    handler,
                    parameters,
                    reply,
                })
            };
            let Some(element) = e else {
                return match shared.global(handler) {
                    Some(value) => Ok(Ok(value)),
                    None => read(0),
                };
            };
            if let Some(value) = shared.unasked(element, handler) {
                return Ok(Ok(value));
            }
            let mut values = Vec::new();
            for &w in shared.readers_of(element, handler) {
                match read(w)? {
                    Ok(v) => values.push(v),
                    error => return Ok(error),
                }
            }
            Ok(Ok(merge(shared, element, handler, values)))
        })
    }

    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        let swap = |text: &str| self.swap(from, BY_HANDLER, text).map(drop);
        // Swap on this thread, so that all workers keep moving packets. Under simulated time, the worker must
        // swap, because only its clock has the current time.
        if element.is_none()
            && (handler != "hotconfig" || !self.settings.clock.is_simulated())
            && let Some(done) = self.write_swap(from, handler, value, Style::Snippets, swap)
        {
            return done;
        }
        self.call(element, |shared, e| {
            let write = |worker| {
                let (handler, value) = (handler.to_string(), value.to_string());
                ask(shared, worker, |reply| Mail::Write {
                    from,
                    urgent: false,
                    element: e,
                    handler,
                    value,
                    reply,
                })
            };
            let Some(element) = e else { return write(0) };
            let replicas = shared.written_replicas(element, handler);
            for &w in shared.workers_of(element).iter().take(replicas) {
                if let error @ Err(_) = write(w)? {
                    return Ok(error);
                }
            }
            Ok(Ok(()))
        })
        .map(|()| String::new())
    }

    fn swaps(&self) -> u64 {
        self.swapped()
    }

    fn has_ended(&self) -> bool {
        self.current().is_none_or(|s| s.is_stopped())
    }

    fn listen(&self, channel: &str, listener: Weak<dyn Listener>) {
        self.session.listen(channel, listener);
    }
}
