// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes handler calls from threads that are not workers. A call goes to the workers that have the element. If a hot
//! swap replaces the configuration before the call is answered, the call is repeated on the new configuration.

use crate::global_handlers::{GlobalRead, GlobalWrite};
use crate::handlers::without_parameters;
use crate::mail::{Access, Call, Mail};
use crate::running::Running;
use crate::shared::{Shared, SwapCommand};
use crate::swap::loader::Style;
use crate::swap::prepare::BY_HANDLER;
use castanet_element::remote::{Listener, Remote};
use castanet_element::{CallError, Missing};
use castanet_spec::Origin;
use std::sync::Weak;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// While a thread waits for a worker's answer, it checks at this interval that the worker is still running.
const PATIENCE: Duration = Duration::from_millis(20);

/// While a thread waits for a worker's answer, it spins for this long before it sleeps.
const SPIN: Duration = Duration::from_micros(150);

/// Why a handler call has no result.
enum Unanswered {
    /// The call failed.
    Failed(CallError),
    /// The router has stopped, so no worker answers.
    Stopped,
    /// A hot swap replaced the configuration before the worker read the request.
    Swapped,
}

impl From<CallError> for Unanswered {
    fn from(e: CallError) -> Self {
        Unanswered::Failed(e)
    }
}

/// Sends a handler call to a worker and waits for the answer.
fn ask(shared: &Shared, worker: usize, call: Call) -> Result<String, Unanswered> {
    let (tx, rx) = sync_channel(1);
    let Some(inbox) = shared.inboxes.get(worker) else { return Err(Unanswered::Stopped) };
    inbox.send(Mail::Call(call, tx));
    // Spin before sleeping: a busy worker answers after a few task turns, and waking a sleeping thread would cost the
    // worker more time than the answer itself.
    let soon = Instant::now() + SPIN;
    while Instant::now() < soon {
        match rx.try_recv() {
            Ok(answer) => return answer.map_err(Unanswered::Failed),
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    loop {
        match rx.recv_timeout(PATIENCE) {
            Ok(answer) => return answer.map_err(Unanswered::Failed),
            Err(_) if shared.is_stopped() => return Err(Unanswered::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Unanswered::Swapped),
        }
    }
}

impl Running {
    /// Makes a call on the current configuration. If a hot swap replaces this configuration meanwhile, repeats the call
    /// on the new one.
    fn call<T>(
        &self,
        element: Option<&str>,
        f: impl Fn(&Shared, Option<u32>) -> Result<T, Unanswered>,
    ) -> Result<T, CallError> {
        loop {
            let gone = || CallError::from(Missing::Router);
            let shared = self.current().ok_or_else(gone)?;
            let e = match element {
                None => None,
                Some(name) => {
                    let none = || CallError::from(Missing::Element(name.to_string()));
                    Some(shared.find(name).ok_or_else(none)?)
                }
            };
            match f(&shared, e) {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Failed(e)) => return Err(e),
                Err(Unanswered::Stopped) => return Err(gone()),
                // The workers of the old configuration stop answering shortly before the new configuration becomes the
                // current one. Try again.
                Err(Unanswered::Swapped) => std::thread::yield_now(),
            }
        }
    }
}

impl Remote for Running {
    fn elements(&self) -> Vec<String> {
        self.current().map(|s| s.all_names()).unwrap_or_default()
    }

    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError> {
        if let Some(e) = element.and_then(|e| self.driver_element(e)) {
            return e.read(handler, parameters);
        }
        self.call(element, |shared, e| {
            let call = |worker| {
                let (handler, access) = (handler.to_string(), Access::Read(parameters.to_string()));
                let call = Call { from: Origin::Anonymous, urgent: false, element: e, handler, access };
                ask(shared, worker, call)
            };
            match e {
                Some(element) => shared.read_replicas(element, handler, parameters, call),
                None => match shared.global_read(handler) {
                    Some(GlobalRead::With(read)) => Ok(read(shared, parameters).map_err(CallError::from)?),
                    _ => match shared.global(handler) {
                        Some(value) => Ok(without_parameters(handler, parameters).map(|()| value)?),
                        None => call(0),
                    },
                },
            }
        })
    }

    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        if element.is_none()
            && let Some(shared) = self.current()
            && let GlobalWrite::Swap(command) = shared.global_write(from, handler)?
            && (command != SwapCommand::Replace || !self.settings.clock.is_simulated())
        {
            // Swap on this thread, so that all workers keep moving packets. Under simulated time, a worker must do the
            // swap, because only the worker's clock has the current time.
            let swap = |text: &str| self.swap(from, BY_HANDLER, text).map(|done| done.warnings);
            return self.command(from, command, value, Style::Snippets, swap);
        }
        if let Some(e) = element.and_then(|e| self.driver_element(e)) {
            return Err(Missing::Write(format!("{}.{handler}", e.name)).into());
        }
        self.call(element, |shared, e| {
            if e.is_none()
                && let GlobalWrite::Request(write) = shared.global_write(from, handler)?
            {
                return Ok(write(shared, value).map_err(CallError::from)?);
            }
            let call = |worker| {
                let (handler, access) = (handler.to_string(), Access::Write(value.to_string()));
                ask(shared, worker, Call { from, urgent: false, element: e, handler, access }).map(drop)
            };
            match e {
                Some(element) => shared.write_replicas(element, handler, call),
                None => call(0),
            }
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
