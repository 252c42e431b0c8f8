// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages to workers, and the inboxes that receive them.

use crate::ledger::Account;
use crate::sleep::Waker;
use castanet_element::CallError;
use castanet_spec::{Origin, Reason};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

/// The part of the ledger that one worker keeps: the accounts of all elements, and the number of packets that wait on
/// edges.
pub type Accounts = (Vec<Account>, u64);
/// The numbers of dropped packets, by element and reason.
pub type Dropped = Vec<(u32, Reason, u64)>;

/// A handler call to an element's replica, or to a global handler.
#[derive(Clone, Debug)]
pub struct Call {
    /// The origin of the call, which decides its rights.
    pub from: Origin,
    /// Whether another worker waits for the answer.
    pub urgent: bool,
    /// The number of the element. None for a global handler.
    pub element: Option<u32>,
    /// The name of the handler.
    pub handler: String,
    /// A read with its parameters, or a write with its value.
    pub access: Access,
}

/// Whether a handler call is a read or a write.
#[derive(Clone, Debug)]
pub enum Access {
    /// A read with these parameters.
    Read(String),
    /// A write of this value.
    Write(String),
}

/// A message to a worker.
pub enum Mail {
    /// Schedule the task of an element.
    Wake(u32),
    /// Update the home worker's timer and descriptor waits for a locked element. A call on another worker has changed
    /// what the element waits for.
    Attend(u32),
    /// Make a handler call, and send the result to this channel: the value of a read, or an empty text for a write.
    Call(Call, SyncSender<Result<String, CallError>>),
    /// Send the numbers of packets that elements dropped on this worker to this channel.
    Drops(SyncSender<Result<Dropped, CallError>>),
    /// Send this worker's part of the ledger to this channel.
    Accounts(SyncSender<Result<Accounts, CallError>>),
    /// Deliver an operating-system signal. The fields are the elements that watch the signal, and the signal's number.
    Signal(Vec<u32>, i32),
}

/// The inbox of one worker.
pub struct Inbox {
    pub(crate) sender: Mutex<Sender<Mail>>,
    pub(crate) waker: Arc<Waker>,
    /// Whether there is mail. The worker reads this flag in every round of its run loop, so it is an atomic, which is
    /// cheap to read.
    pub(crate) full: AtomicBool,
    /// The number of rounds that the worker's run loop has made so far. Only the worker writes it.
    pub(crate) rounds: AtomicU64,
    /// How long the worker has polled: run tasks that found no packet. In nanoseconds. Only the worker writes it.
    pub(crate) polled: AtomicU64,
    /// Whether the worker is waiting for another worker: for its lock, or for its answer to a handler call.
    pub(crate) waiting: AtomicBool,
}

impl Mail {
    /// Whether another worker waits for the answer. A worker answers such mail even while it waits for another worker
    /// itself.
    pub(crate) fn is_urgent(&self) -> bool {
        match self {
            Mail::Call(call, _) => call.urgent,
            Mail::Drops(_) | Mail::Accounts(_) => true,
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
            polled: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
        };
        (inbox, receiver)
    }
    /// Sends mail and wakes the worker.
    pub fn send(&self, mail: Mail) {
        // Sending fails only if the worker has ended. In that case, the mail is not needed.
        let _ = self.sender.lock().send(mail);
        self.full.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}
