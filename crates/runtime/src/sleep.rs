// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a worker to sleep until a time, until a descriptor is ready, or until another thread wakes it.

use castanet_element::Interest;
use castanet_element::watch::{Change, Watches};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The maximum number of events that one epoll call returns.
const EVENTS: usize = 64;

/// The epoll data of the eventfd that wakes the worker. The epoll data of a watched descriptor is its number, which is
/// never this value.
const WAKER: u64 = u64::MAX;
/// Below this duration, a sleep is timed in nanoseconds, which takes two system calls. Longer sleeps use the timeout of
/// epoll, which has a resolution of 1 ms.
const COARSE: Duration = Duration::from_millis(20);

/// The epoll flags for a readable and for a writable descriptor.
const FLAGS: [epoll::EventFlags; 2] = [epoll::EventFlags::IN, epoll::EventFlags::OUT];

/// Wakes a worker from another thread.
#[derive(Debug)]
pub(crate) struct Waker {
    event: OwnedFd,
    /// Whether the worker sleeps or is about to sleep. Other threads need to wake it only in that case.
    asleep: AtomicBool,
    start: Instant,
    /// The total duration of the worker's completed sleeps, in nanoseconds.
    slept: AtomicU64,
    /// When the current sleep began, in nanoseconds after `start`. 0 while the worker is awake. Only the worker writes
    /// this field and `slept`.
    sleeps_since: AtomicU64,
}

impl Waker {
    fn new(event: OwnedFd) -> Waker {
        Waker {
            event,
            asleep: AtomicBool::new(false),
            start: Instant::now(),
            slept: AtomicU64::new(0),
            sleeps_since: AtomicU64::new(0),
        }
    }
    /// Wakes the worker if it sleeps. Before this call, the caller must store what the worker should see, with
    /// sequentially consistent ordering.
    pub fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // The write fails only if the counter of the eventfd is full. In that case, the worker wakes anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
    /// Calls `f`, which puts the worker to sleep, and adds the duration of the call to `slept`.
    fn asleep_in<R>(&self, f: impl FnOnce() -> R) -> R {
        let since = self.now();
        self.sleeps_since.store(since.max(1), Ordering::Relaxed);
        let out = f();
        let slept = self.slept.load(Ordering::Relaxed).saturating_add(self.now().saturating_sub(since));
        self.sleeps_since.store(0, Ordering::Relaxed);
        self.slept.store(slept, Ordering::Relaxed);
        out
    }
    /// Returns how long the worker has been awake in total, and how long ago it was created.
    pub fn times(&self) -> (Duration, Duration) {
        let slept = self.slept.load(Ordering::Relaxed);
        let since = self.sleeps_since.load(Ordering::Relaxed);
        let now = self.now();
        let asleep = slept.saturating_add(if since == 0 { 0 } else { now.saturating_sub(since) });
        (Duration::from_nanos(now.saturating_sub(asleep)), Duration::from_nanos(now))
    }
}

/// A descriptor that is registered with epoll, and the keys of its two watches. The first waits until the descriptor is
/// readable, the second until it is writable.
///
/// When neither watch waits, the descriptor is removed from epoll. If it stayed registered, the kernel would call
/// epoll's wake-up function for each packet that arrives at a socket. This would cost the sender time, although the
/// worker is awake.
struct Waits {
    fd: Arc<OwnedFd>,
    keys: [Option<u64>; 2],
}

impl Waits {
    /// The events to wait for.
    fn flags(&self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        for (key, flag) in self.keys.iter().zip(FLAGS) {
            flags.set(flag, key.is_some());
        }
        flags
    }
    /// The epoll data of the descriptor, which is its number.
    fn data(&self) -> epoll::EventData {
        epoll::EventData::new_u64(u64::from(self.fd.as_raw_fd().unsigned_abs()))
    }
}

/// Puts one worker to sleep, with an epoll descriptor.
pub(crate) struct Sleeper {
    waker: Arc<Waker>,
    epoll: OwnedFd,
    /// The descriptors that are registered with epoll, by number. Epoll accepts each descriptor only once, so the
    /// watches for reading and for writing share an entry.
    waits: HashMap<RawFd, Waits>,
    /// The keys of waiting watches whose descriptors epoll refuses, such as regular files. These descriptors count as
    /// always ready.
    ready: Vec<u64>,
}

impl Sleeper {
    /// Creates the sleeper of one worker.
    ///
    /// # Errors
    /// When the process has reached its limit of open descriptors.
    pub fn new() -> std::io::Result<Sleeper> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &event, epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        Ok(Sleeper { waker: Arc::new(Waker::new(event)), epoll, waits: HashMap::new(), ready: Vec::new() })
    }
    /// The waker of this worker.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Passes to epoll the changes of the descriptors that elements wait for.
    fn register(&mut self, watches: &mut Watches) {
        for change in watches.changes() {
            match change {
                Change::Wait(key, fd, interest) => {
                    let number = fd.as_raw_fd();
                    let new = !self.waits.contains_key(&number);
                    let waits = self.waits.entry(number).or_insert(Waits { fd, keys: [None; 2] });
                    if let Some(k) = waits.keys.get_mut(usize::from(interest == Interest::Write)) {
                        *k = Some(key);
                    }
                    self.update(number, new);
                }
                Change::Forget(key, fd) => {
                    self.change(fd.as_raw_fd(), |w| w.keys = w.keys.map(|k| k.filter(|&k| k != key)));
                }
            }
        }
    }

    /// Changes the watches of a registered descriptor, and updates its registration.
    fn change(&mut self, number: RawFd, change: impl FnOnce(&mut Waits)) {
        if let Some(waits) = self.waits.get_mut(&number) {
            change(waits);
            self.update(number, false);
        }
    }

    /// Passes to epoll the events that the watches of a descriptor wait for. `new` is true if the descriptor is not
    /// registered yet.
    fn update(&mut self, number: RawFd, new: bool) {
        let Some(waits) = self.waits.get(&number) else { return };
        let (epoll, fd, flags) = (&self.epoll, &waits.fd, waits.flags());
        let done = match (flags.is_empty(), new) {
            (true, _) => epoll::delete(epoll, fd),
            (false, true) => epoll::add(epoll, fd, waits.data(), flags),
            (false, false) => epoll::modify(epoll, fd, waits.data(), flags),
        };
        // Epoll refuses regular files. They are always ready, so their watches move to `ready`.
        if flags.is_empty() || done.is_err() {
            self.ready.extend(self.waits.remove(&number).into_iter().flat_map(|w| w.keys).flatten());
        }
    }

    /// Checks without waiting which descriptors are ready, and wakes their tasks. Returns false if none is ready.
    pub fn look(&mut self, watches: &mut Watches, wake: impl FnMut(u32)) -> bool {
        self.register(watches);
        self.collect(watches, Some(Duration::ZERO), wake)
    }

    /// Waits for at most `time`, in whole milliseconds, until a descriptor is ready. If `time` is none, waits without a
    /// limit. Wakes the tasks whose descriptors are ready. Returns false if none is ready.
    fn collect(&mut self, watches: &mut Watches, time: Option<Duration>, mut wake: impl FnMut(u32)) -> bool {
        let time = time.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_millis()) * 1_000_000,
        });
        let mut events = [MaybeUninit::uninit(); EVENTS];
        // If a signal interrupts the call, no event is lost: the next call reports it.
        let found = epoll::wait(&self.epoll, &mut events, time.as_ref());
        let found = found.map_or(&mut [] as &mut [epoll::Event], |(found, _)| found);
        let mut keys = std::mem::take(&mut self.ready);
        for e in found {
            if e.data.u64() == WAKER {
                let _ = rustix::io::read(&self.waker.event, &mut [0; 8]);
                continue;
            }
            let Ok(fd) = RawFd::try_from(e.data.u64()) else { continue };
            // Errors and hang-ups wake both readers and writers.
            let flags = e.flags;
            let other = !(epoll::EventFlags::IN | epoll::EventFlags::OUT);
            self.change(fd, |waits| {
                for (key, flag) in waits.keys.iter_mut().zip(FLAGS) {
                    if flags.intersects(flag | other) {
                        keys.extend(key.take());
                    }
                }
            });
        }
        keys.append(&mut self.ready);
        let mut any = false;
        for element in keys.drain(..).filter_map(|k| watches.ready(k)) {
            wake(element);
            any = true;
        }
        self.ready = keys;
        any
    }

    /// Sleeps for `time`. If `time` is none, sleeps without a limit. If `stay` returns true, does not sleep. The sleep
    /// ends early on [`Waker::wake`], or when a descriptor is ready. Wakes the tasks whose descriptors are ready.
    pub fn sleep(
        &mut self,
        watches: &mut Watches,
        time: Option<Duration>,
        stay: impl Fn() -> bool,
        wake: impl FnMut(u32),
    ) {
        self.register(watches);
        let mut time = if self.ready.is_empty() { time } else { Some(Duration::ZERO) };
        self.waker.asleep.store(true, Ordering::SeqCst);
        if stay() {
            time = Some(Duration::ZERO);
        }
        if time == Some(Duration::ZERO) {
            self.collect(watches, time, wake);
        } else {
            let waker = self.waker.clone();
            waker.asleep_in(|| self.sleep_now(watches, time, wake));
        }
        self.waker.asleep.store(false, Ordering::SeqCst);
    }

    fn sleep_now(&mut self, watches: &mut Watches, mut time: Option<Duration>, wake: impl FnMut(u32)) {
        if let Some(short) = time.filter(|t| *t < COARSE && !t.is_zero()) {
            let short = Timespec { tv_sec: 0, tv_nsec: short.subsec_nanos().into() };
            // If a signal interrupts the call, the run loop finds nothing to do and calls `sleep` again.
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&short));
            time = Some(Duration::ZERO);
        }
        self.collect(watches, time, wake);
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
        s.sleep(&mut w, Some(Duration::from_micros(3500)), || false, |_| {});
        assert!(start.elapsed() >= Duration::from_micros(3500));
        let (awake, exists) = s.waker.times();
        assert!(exists - awake >= Duration::from_micros(3500), "{awake:?} of {exists:?}");
        s.sleep(&mut w, None, || true, |_| {});
        let waker = s.waker();
        waker.wake();
        std::thread::scope(|t| {
            t.spawn(|| {
                while !waker.asleep.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                waker.wake();
            });
            s.sleep(&mut w, None, || false, |_| {});
        });
        // The sleep above has consumed the wake-up, so the next sleep lasts for its full time.
        let start = Instant::now();
        s.sleep(&mut w, Some(Duration::from_millis(2)), || false, |_| {});
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    /// The number of descriptors registered with epoll, including the eventfd (proc_pid_fdinfo(5)).
    fn known(s: &Sleeper) -> usize {
        let path = format!("/proc/self/fdinfo/{}", s.epoll.as_raw_fd());
        std::fs::read_to_string(path).unwrap().lines().filter(|l| l.starts_with("tfd:")).count()
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
        assert_eq!(known(&s), 2);
        rustix::io::write(&write, b"x").unwrap();
        let mut woken = Vec::new();
        s.sleep(&mut w, None, || false, |e| woken.push(e));
        assert_eq!(woken, [3]);
        assert_eq!(known(&s), 1, "what nobody waits for costs nothing when something comes");
        // The descriptor is still readable, but no watch waits for it, so there is no event.
        assert_eq!(look(&mut s, &mut w), []);
        w.wait(a);
        w.remove(a);
        assert_eq!(look(&mut s, &mut w), []);
        // Watches for reading and for writing of the same descriptor get separate events.
        let (left, right) = std::os::unix::net::UnixStream::pair().unwrap();
        let left: Arc<OwnedFd> = Arc::new(left.into());
        let (c, d) = (w.add(6, left.clone(), Interest::Read), w.add(7, left, Interest::Write));
        w.wait(c);
        w.wait(d);
        assert_eq!(look(&mut s, &mut w), [7]);
        assert_eq!(look(&mut s, &mut w), []);
        rustix::io::write(&right, b"x").unwrap();
        assert_eq!(look(&mut s, &mut w), [6]);
        w.wait(d);
        w.wait(c);
        w.remove(c);
        assert_eq!(look(&mut s, &mut w), [7]);
        // A regular file is always ready.
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        let c = w.add(5, Arc::new(file), Interest::Read);
        w.wait(c);
        let mut woken = Vec::new();
        s.sleep(&mut w, None, || false, |e| woken.push(e));
        assert_eq!(woken, [5]);
    }
}
