// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drops capabilities on every thread of the process.
//!
//! Capabilities belong to threads (capabilities(7)). Elements, control sockets and mounts start threads before
//! the router has opened all of its devices. So a signal interrupts each thread, and the signal handler drops the
//! thread's capabilities.
#![allow(unsafe_code)]

use parking_lot::Mutex;
use rustix::thread::{CapabilitySet, capabilities};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The capabilities with which this program opens devices.
pub const DEVICES: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);

/// The version of the capset(2) structures with 64 capability bits.
const VERSION: u32 = 0x2008_0522;
/// All capability numbers are less than this.
const NUMBERS: u64 = 64;
/// How long all threads together may take to drop their capabilities. No thread needs long: the signal also wakes
/// threads that sleep in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// The value of unused arguments of prctl(2). The function is variadic and reads each argument as an `unsigned long`,
/// so the value must have this type.
const ZERO: libc::c_ulong = 0;
/// Largest number of threads that are interrupted in one pass of the loop in [`interrupt`].
const MOST: usize = 64;

/// The capabilities that threads keep. Bit `n` is the capability with number `n`.
static KEEP: AtomicU64 = AtomicU64::new(0);
/// The IDs of the threads that have dropped their capabilities in the current pass.
static DONE: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
/// The number of IDs in [`DONE`].
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The effective capabilities of this thread.
///
/// # Errors
/// When the system call fails.
pub fn effective() -> io::Result<CapabilitySet> {
    Ok(capabilities(None)?.effective)
}

/// Whether this process may load XDP programs, or could before it dropped capabilities: it has CAP_BPF, CAP_NET_ADMIN and
/// CAP_NET_RAW in the initial user namespace. A process that drops them leaves the loading to its opener.
pub fn may_use_xdp() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let wanted = DEVICES | CapabilitySet::BPF;
        let capable = effective().is_ok_and(|c| c.contains(wanted) || c.contains(CapabilitySet::SYS_ADMIN));
        // The map of the initial namespace has one line, which covers all numbers.
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        capable && map.split_whitespace().eq(["0", "0", "4294967295"])
    })
}

/// Lifts the limit of locked memory, if permitted. Programs without CAP_IPC_LOCK need that for AF_XDP, and the limit cannot
/// be lifted once privileges are dropped.
pub fn allow_locked_memory() {
    let unlimited = rustix::process::Rlimit { current: None, maximum: None };
    // Without permission, the error of the device says what to do.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, unlimited);
}

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Words {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Restricts the calling thread to these capabilities and sets `no_new_privs`, so that the thread cannot gain
/// other capabilities by starting programs.
///
/// This function makes only system calls, so a signal handler may call it.
fn limit(keep: u64) {
    for number in (0..NUMBERS).filter(|n| keep >> n & 1 == 0) {
        // SAFETY: the arguments are numbers; the kernel refuses unknown ones.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number as libc::c_ulong, ZERO, ZERO, ZERO) };
    }
    let header = Header { version: VERSION, pid: 0 };
    let mut words = [Words::default(); 2];
    // SAFETY: the pointers are to a header of this version and to its two structures, which live during the
    // calls. capget writes to the structures, for which any bytes are valid, and capset reads them.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw const header, &raw mut words) == 0 {
            for (word, keep) in words.iter_mut().zip([keep as u32, (keep >> 32) as u32]) {
                word.permitted &= keep;
                word.effective &= keep;
                word.inheritable = 0;
            }
            libc::syscall(libc::SYS_capset, &raw const header, &raw const words);
        }
    }
    // SAFETY: the arguments are numbers.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, ZERO, ZERO, ZERO);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, ZERO, ZERO, ZERO);
    }
}

extern "C" fn interrupted(_: libc::c_int) {
    // SAFETY: the address of this thread's errno is valid as long as the thread runs. The handler restores
    // errno for the interrupted code.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: see above.
    let before = unsafe { *errno };
    limit(KEEP.load(Ordering::SeqCst));
    // SAFETY: gettid has no preconditions.
    let me = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if let Some(place) = DONE.get(COUNT.fetch_add(1, Ordering::SeqCst)) {
        place.store(me, Ordering::SeqCst);
    }
    // SAFETY: see above.
    unsafe { *errno = before };
}

/// Reads the status file of a thread. Returns its permitted capabilities, and whether `no_new_privs` is set.
fn allowed(thread: i32) -> Option<(u64, bool)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let value = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let permitted = u64::from_str_radix(value("CapPrm:")?, 16).ok()?;
    Some((permitted, value("NoNewPrivs:")? == "1"))
}

fn threads() -> io::Result<Vec<i32>> {
    let all = std::fs::read_dir("/proc/self/task")?;
    Ok(all.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
}

fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// Restricts every thread of this process to these capabilities and sets `no_new_privs`. Neither can be undone.
///
/// # Errors
/// When a thread still has other capabilities after five seconds, or the threads cannot be listed.
/// Capabilities dropped before the error stay dropped.
pub fn keep_only(keep: CapabilitySet) -> io::Result<()> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    // Read now, because the answer is needed later.
    may_use_xdp();
    KEEP.store(keep.bits(), Ordering::SeqCst);
    limit(keep.bits());
    let signal = libc::SIGRTMAX() - 1;
    // SAFETY: all bytes zero is a valid sigaction.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = (interrupted as extern "C" fn(libc::c_int)) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler takes the number of the signal, as required without SA_SIGINFO, and makes only
    // system calls and atomic accesses. Both actions live during the call.
    if unsafe { libc::sigaction(signal, &action, &mut before) } < 0 {
        return Err(last_error());
    }
    let done = interrupt(signal, keep.bits());
    // SAFETY: `before` was written by the kernel. Unless `done` is an error, all signals that were sent have been
    // handled, so none of them arrives after the old action is restored.
    unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
    done
}

/// Interrupts the threads that have more capabilities than `keep`, until no such thread is left. Returns an
/// error if this takes too long.
fn interrupt(signal: libc::c_int, keep: u64) -> io::Result<()> {
    let process = std::process::id() as libc::c_int;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let more = |t: &i32| allowed(*t).is_some_and(|(has, closed)| has & !keep != 0 || !closed);
        let mut left: Vec<i32> = threads()?.into_iter().filter(more).collect();
        if left.is_empty() {
            return Ok(());
        }
        left.truncate(MOST);
        DONE.iter().for_each(|d| d.store(0, Ordering::SeqCst));
        COUNT.store(0, Ordering::SeqCst);
        let mut waiting = Vec::new();
        for thread in left {
            // SAFETY: the arguments are numbers; the call fails for a thread that has ended meanwhile.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) } == 0;
            if sent {
                waiting.push(thread);
            }
        }
        while !waiting.is_empty() {
            let answered = |t: &i32| DONE.iter().any(|d| d.load(Ordering::SeqCst) == *t);
            waiting.retain(|t| !answered(t) && allowed(*t).is_some());
            if Instant::now() > deadline {
                let what = format!("thread {} does not drop its capabilities", waiting.first().unwrap_or(&0));
                return Err(io::Error::other(what));
            }
            std::thread::yield_now();
        }
        if Instant::now() > deadline {
            return Err(io::Error::other("a thread keeps capabilities"));
        }
    }
}
