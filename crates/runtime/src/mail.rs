// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages to workers, and the inboxes they go to.

use crate::sleep::Waker;
use castanet_element::CallError;
use castanet_spec::{Origin, Reason};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

/// Packets dropped, by element and reason.
pub type Dropped = Vec<(u32, Reason, u64)>;

/// A call of a handler of an element's replica, or of a global handler.
#[derive(Clone, Debug)]
pub struct Call {
    /// The source of the call, which decides its rights.
    pub from: Origin,
    /// Whether a worker waits for the answer.
    pub urgent: bool,
    /// The number of the element; none for a global handler.
    pub element: Option<u32>,
    /// The name of the handler.
    pub handler: String,
    /// Whether the handler is read or written, and with which text.
    pub access: Access,
}

/// Reading or writing of a handler.
#[derive(Clone, Debug)]
pub enum Access {
    /// Reads it, with these parameters.
    Read(String),
    /// Writes this value to it.
    Write(String),
}

/// A message to a worker.
pub enum Mail {
    /// Schedule the task of an element.
    Wake(u32),
    /// Look at the timers and descriptors of a locked element, because a call on another worker has changed them.
    Attend(u32),
    /// Call a handler, and send the answer here: the value of a read, nothing for a write.
    Call(Call, SyncSender<Result<String, CallError>>),
    /// Report the packets that elements dropped on this worker.
    Drops(SyncSender<Result<Dropped, CallError>>),
    /// A signal of the operating system has arrived. Holds the elements that watch it, and the number of the signal.
    Signal(Vec<u32>, i32),
}

/// The inbox of one worker.
pub struct Inbox {
    pub(crate) sender: Mutex<Sender<Mail>>,
    pub(crate) waker: Arc<Waker>,
    /// Whether there is mail. The worker reads this flag in every round of its run loop, so reading it must be
    /// cheap.
    pub(crate) full: AtomicBool,
    /// The number of rounds that the worker's run loop has made so far. Only the worker writes it.
    pub(crate) rounds: AtomicU64,
    /// Whether the worker waits for another one: for a lock, or for the answer to a handler call.
    pub(crate) waiting: AtomicBool,
}

impl Mail {
    /// Whether a worker waits for the answer. If so, this mail is answered even while its receiver waits for another
    /// worker.
    pub(crate) fn is_urgent(&self) -> bool {
        match self {
            Mail::Call(call, _) => call.urgent,
            Mail::Drops(_) => true,
            Mail::Wake(_) | Mail::Attend(_) | Mail::Signal(..) => false,
        }
    }
}

impl Inbox {
    /// Returns an empty inbox, and the receiver from which the worker takes its mail.
    pub(crate) fn new(waker: Arc<Waker>) -> (Inbox, Receiver<Mail>) {
        let (sender, receiver) = channel();
        let inbox = Inbox {
            sender: Mutex::new(sender),
            waker,
            full: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
        };
        (inbox, receiver)
    }
    /// Sends mail and wakes the worker.
    pub fn send(&self, mail: Mail) {
        // Sending fails only if the worker is gone; then the mail is not needed.
        let _ = self.sender.lock().send(mail);
        self.full.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}
