// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes messages from workers to the clients of a ChatterSocket.

use castanet_element::Listener;
use castanet_element::spec::bytes;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The first line that a client receives.
pub const GREETING: &str = "Click::ChatterSocket/1.0\r\n";

/// Wakes the server's thread, which waits in epoll.
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker without a pending wake-up.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> std::io::Result<Waker> {
        Ok(Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }
    /// Wakes the server's thread.
    pub fn wake(&self) {
        // The write fails only when the counter is at its maximum. In this case, a wake-up is pending already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
    /// Clears pending wake-ups.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Buffers the messages of a channel for the server's thread. Workers never wait for that thread: messages
/// that do not fit are lost and counted.
pub struct Subscriber {
    waker: std::sync::Arc<Waker>,
    most: usize,
    received: Mutex<Received>,
}

/// The messages since the last call of [`Subscriber::take`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The messages, a line end after each.
    pub text: Vec<u8>,
    /// The number of messages that did not fit.
    pub lost: u64,
}

impl Subscriber {
    /// Creates a buffer of at most `most` bytes. The first message in the empty buffer wakes the server's thread
    /// by `waker`.
    pub fn new(waker: std::sync::Arc<Waker>, most: usize) -> Subscriber {
        Subscriber { waker, most, received: Mutex::default() }
    }
    /// Removes and returns the buffered messages.
    pub fn take(&self) -> Received {
        std::mem::take(&mut self.received.lock())
    }
}

impl Listener for Subscriber {
    fn hear(&self, text: &str) {
        let mut received = self.received.lock();
        let line = bytes::line(text);
        if received.text.len().saturating_add(line.len()) > self.most {
            received.lost += 1;
            return;
        }
        let first = received.text.is_empty();
        received.text.extend(line);
        drop(received);
        if first {
            self.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    #[test]
    fn messages_that_do_not_fit_are_lost_and_counted() {
        let waker = Arc::new(Waker::new().unwrap());
        let subscriber = Subscriber::new(waker.clone(), 10);
        let woken = || rustix::io::read(waker.as_fd(), &mut [0; 8]).is_ok();
        assert!(!woken());
        subscriber.hear("abc");
        subscriber.hear("de");
        assert!(woken());
        subscriber.hear("fgh");
        subscriber.hear("");
        assert_eq!(subscriber.take(), Received { text: b"abc\nde\n\n".to_vec(), lost: 1 });
        assert!(!woken(), "one wake-up for several messages");
        assert_eq!(subscriber.take(), Received::default());
    }
}
