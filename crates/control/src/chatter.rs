// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on their way from workers to clients that listen.

use castanet_element::Listener;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// The first line that a client sees.
pub const GREETING: &str = "Click::ChatterSocket/1.0\r\n";

/// Wakes a thread that waits for descriptors.
pub struct Bell(OwnedFd);

impl Bell {
    /// One that has not rung.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> std::io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }
    /// Wakes who waits.
    pub fn ring(&self) {
        // It fails only when it has been rung more often than can be counted: then it rings already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
    /// Forgets that it has rung.
    pub fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Hears the messages of a channel for the thread that sends them on. Workers never wait for it: what it has no room for is
/// lost, and counted.
pub struct Ear {
    bell: std::sync::Arc<Bell>,
    most: usize,
    heard: Mutex<Heard>,
}

/// What was heard since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The messages, a line end after each.
    pub text: Vec<u8>,
    /// Messages that there was no room for.
    pub lost: u64,
}

impl Ear {
    /// One that has room for so many bytes, and rings when there is something to look at.
    pub fn new(bell: std::sync::Arc<Bell>, most: usize) -> Ear {
        Ear { bell, most, heard: Mutex::default() }
    }
    /// What was heard since the last time.
    pub fn take(&self) -> Heard {
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Ear {
    fn hear(&self, text: &str) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.text.len().saturating_add(text.len()) >= self.most {
            heard.lost += 1;
            return;
        }
        let first = heard.text.is_empty();
        heard.text.extend_from_slice(text.as_bytes());
        heard.text.push(b'\n');
        drop(heard);
        if first {
            self.bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_has_no_room_is_lost_and_counted() {
        let bell = Arc::new(Bell::new().unwrap());
        let ear = Ear::new(bell.clone(), 10);
        let rung = || rustix::io::read(bell.as_fd(), &mut [0; 8]).is_ok();
        assert!(!rung());
        ear.hear("abc");
        ear.hear("de");
        assert!(rung());
        ear.hear("fgh");
        ear.hear("");
        assert_eq!(ear.take(), Heard { text: b"abc\nde\n\n".to_vec(), lost: 1 });
        assert!(!rung(), "one ring for several messages");
        assert_eq!(ear.take(), Heard::default());
    }
}
