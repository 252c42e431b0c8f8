// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a worker sleeps: until a time, until a descriptor is ready, or until somebody wakes it.

use castanet_element::Interest;
use castanet_element::watch::{Change, Watches};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most descriptors that one look takes up.
const EVENTS: usize = 64;

/// What wakes a worker from other threads.
#[derive(Debug)]
pub(crate) struct Waker {
    event: OwnedFd,
    /// Whether the worker sleeps or is about to: only then it must be woken.
    asleep: AtomicBool,
}

impl Waker {
    /// Wakes the worker if it sleeps. What it is to see when awake must have been stored before, sequentially consistent.
    pub fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // It fails only when the counter is full, and then the worker wakes anyhow.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

/// What a worker sleeps on.
pub(crate) struct Sleeper {
    waker: Arc<Waker>,
    epoll: OwnedFd,
    /// Descriptors that the system does not wait for, such as plain files: they are always ready.
    ready: Vec<u64>,
}

impl Sleeper {
    /// For one worker.
    ///
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new() -> std::io::Result<Sleeper> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Sleeper {
            waker: Arc::new(Waker { event, asleep: AtomicBool::new(false) }),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ready: Vec::new(),
        })
    }
    /// What wakes this worker.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Tells the system what elements wait for.
    fn register(&mut self, watches: &mut Watches) {
        for change in watches.changes() {
            match change {
                Change::Wait(key, fd, interest) => {
                    let flags = match interest {
                        Interest::Read => epoll::EventFlags::IN,
                        Interest::Write => epoll::EventFlags::OUT,
                    } | epoll::EventFlags::ONESHOT;
                    let data = epoll::EventData::new_u64(key);
                    let done = match epoll::add(&self.epoll, &fd, data, flags) {
                        Err(Errno::EXIST) => epoll::modify(&self.epoll, &fd, data, flags),
                        other => other,
                    };
                    if done.is_err() {
                        self.ready.push(key);
                    }
                }
                Change::Forget(_, fd) => {
                    // It was never registered if nobody waited for it.
                    let _ = epoll::delete(&self.epoll, &fd);
                }
            }
        }
    }

    /// Wakes the tasks whose descriptors are ready, without waiting; false when there was none.
    pub fn look(&mut self, watches: &mut Watches, mut wake: impl FnMut(u32)) -> bool {
        self.register(watches);
        let mut events = [MaybeUninit::uninit(); EVENTS];
        // When it is interrupted, the next look finds the same.
        let found = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()));
        let found = found.map_or(&mut [] as &mut [epoll::Event], |(found, _)| found);
        let keys = found.iter().map(|e| e.data.u64()).chain(self.ready.drain(..));
        let mut any = false;
        for element in keys.filter_map(|k| watches.ready(k)) {
            wake(element);
            any = true;
        }
        any
    }

    /// Sleeps for so long, or without end, unless `stay` says that there is something to do; woken by [`Waker::wake`] and by
    /// descriptors that are ready, which [`Sleeper::look`] then finds.
    pub fn sleep(&mut self, watches: &mut Watches, time: Option<Duration>, stay: impl Fn() -> bool) {
        self.register(watches);
        if !self.ready.is_empty() {
            return;
        }
        self.waker.asleep.store(true, Ordering::SeqCst);
        if !stay() {
            let time = time.map(|t| Timespec {
                tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: t.subsec_nanos().into(),
            });
            let mut fds =
                [PollFd::new(&self.waker.event, PollFlags::IN), PollFd::new(&self.epoll, PollFlags::IN)];
            // When it is interrupted, the worker looks round and sleeps again.
            let _ = poll(&mut fds, time.as_ref());
            if fds.first().is_some_and(|f| !f.revents().is_empty()) {
                let _ = rustix::io::read(&self.waker.event, &mut [0; 8]);
            }
        }
        self.waker.asleep.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_sleeps_its_time_and_no_longer_than_somebody_lets_it() {
        let mut s = Sleeper::new().unwrap();
        let mut w = Watches::default();
        let start = Instant::now();
        s.sleep(&mut w, Some(Duration::from_micros(3500)), || false);
        assert!(start.elapsed() >= Duration::from_micros(3500));
        s.sleep(&mut w, None, || true);
        let waker = s.waker();
        waker.wake();
        std::thread::scope(|t| {
            t.spawn(|| {
                while !waker.asleep.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                waker.wake();
            });
            s.sleep(&mut w, None, || false);
        });
        // The wake-up was consumed: the next sleep lasts.
        let start = Instant::now();
        s.sleep(&mut w, Some(Duration::from_millis(2)), || false);
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    #[test]
    fn descriptors_wake_once_for_each_wait() {
        let mut s = Sleeper::new().unwrap();
        let mut w = Watches::default();
        let (read, write) = std::io::pipe().unwrap();
        let (read, write): (Arc<OwnedFd>, Arc<OwnedFd>) = (Arc::new(read.into()), Arc::new(write.into()));
        let (a, b) = (w.add(3, read.clone(), Interest::Read), w.add(4, write.clone(), Interest::Write));
        let look = |s: &mut Sleeper, w: &mut Watches| {
            let mut woken = Vec::new();
            s.look(w, |e| woken.push(e));
            woken
        };
        w.wait(a);
        assert_eq!(look(&mut s, &mut w), []);
        w.wait(b);
        assert_eq!(look(&mut s, &mut w), [4]);
        rustix::io::write(&write, b"x").unwrap();
        s.sleep(&mut w, None, || false);
        assert_eq!(look(&mut s, &mut w), [3]);
        // What is not waited for is not told, though there is still something to read.
        assert_eq!(look(&mut s, &mut w), []);
        w.wait(a);
        w.remove(a);
        assert_eq!(look(&mut s, &mut w), []);
        // A plain file is always ready.
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        let c = w.add(5, Arc::new(file), Interest::Read);
        w.wait(c);
        s.sleep(&mut w, None, || false);
        assert_eq!(look(&mut s, &mut w), [5]);
    }
}
