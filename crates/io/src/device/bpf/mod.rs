// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of bpf(2) that the modules `live`, `shield` and `xdp` need: maps with one value, maps of AF_XDP sockets,
//! programs that send frames, and programs at the ingress of a device.
#![allow(unsafe_code)]

mod map;
mod parts;
mod pin;
mod shared;
mod tracepoint;

pub use castanet_kernel::Instruction as Operation;
pub use map::{Map, MapKind, MapShape};
pub use parts::PartMap;
pub use pin::{counters as pinned_counters, device_of, id_of, pin, pinned};
pub use shared::SharedWords;
pub use tracepoint::at_tracepoint;

use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const MAP_DELETE_ELEM: libc::c_int = 3;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const ENABLE_STATS: libc::c_int = 32;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
/// Attach type of programs at the ingress of a device (Linux 6.6).
const TCX_INGRESS: u32 = 46;
/// Attach type of programs that the driver of a device runs for each received frame (Linux 5.9).
const AT_XDP: u32 = 37;
/// Flag of a program: it accepts frames that lie in several pieces of memory (Linux 5.18). Devices with a large MTU
/// refuse other programs.
const ACCEPTS_FRAGMENTS: u32 = 1 << 5;
/// Flag: attach the program before all programs that are already attached.
const BEFORE: u32 = 1 << 3;
/// Flag: a test run really redirects or drops the frame, as the program decides (Linux 5.18).
const LIVE_FRAMES: u32 = 2;
/// The length of the verifier's log.
const LOG: usize = 1 << 20;
/// Level of the verifier's log: the steps of the verifier and its complaint.
const STEPS: u32 = 1;
/// Level of the verifier's log: only the complaint and statistics.
const COMPLAINTS: u32 = 4;
/// The signal that interrupts the system call of [`Program::run_during`]. Its handler does nothing: any handled signal
/// makes the call return.
const SIGNAL: libc::c_int = libc::SIGUSR1;

/// The licence of programs.
const LICENSE: &CStr = c"MIT OR Apache-2.0";

#[repr(C)]
#[derive(Default)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ElementAttributes {
    map: i32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    operations: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct LinkAttributes {
    program: i32,
    device: u32,
    place: u32,
    flags: u32,
    relative: u32,
    pad: u32,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct UpdateAttributes {
    link: i32,
    program: i32,
    flags: u32,
    old: u32,
}

#[repr(C)]
#[derive(Default)]
struct RunAttributes {
    program: i32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_sizes: [u32; 2],
    contexts: [u64; 2],
    flags: u32,
    cpu: u32,
    batch: u32,
    pad: u32,
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>().expose_provenance() as u64
}

/// # Safety
/// `attributes` must be the structure that `command` takes. Its pointers must be valid for what `command` reads and
/// writes.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> Result<i32, Errno> {
    let (command, size) = (libc::c_long::from(command), size_of::<T>());
    // SAFETY: the pointer is to size_of::<T>() bytes. The kernel reads and writes no more than these bytes. If its own
    // structure has more fields, it treats them as zero. The caller guarantees that `attributes` belongs to the
    // command and that the pointers in it are valid.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    if r < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(i32::try_from(r).unwrap_or(0))
}

/// The text in a buffer, which ends with a zero.
fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).into_owned()
}

/// A value that this process shares with a BPF program.
#[derive(Debug)]
pub struct Shared<T> {
    fd: OwnedFd,
    value: std::marker::PhantomData<fn() -> T>,
}

impl<T: FromBytes + IntoBytes + Immutable> Shared<T> {
    /// Creates a value with all bytes zero.
    pub fn new() -> Result<Shared<T>, Errno> {
        // The cast is lossless: values are a few dozen bytes long.
        let value_size = size_of::<T>() as u32;
        let mut attributes =
            MapAttributes { kind: MAP_TYPE_ARRAY, key_size: 4, value_size, entries: 1, flags: 0 };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new
        // descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &mut attributes)?) };
        Ok(Shared { fd, value: std::marker::PhantomData })
    }

    /// The descriptor of the map that holds the value. Instructions refer to the map by this number.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The current value.
    pub fn get(&self) -> Result<T, Errno> {
        let mut value = T::new_zeroed();
        let key = 0u32;
        let place = std::ptr::from_mut(&mut value).expose_provenance() as u64;
        let mut attributes = self.element(&key, place);
        // SAFETY: the map was made for keys of four bytes and values of size_of::<T>() bytes. The command
        // writes the value, for which any bytes are valid. Key and value live during the call.
        unsafe { bpf(MAP_LOOKUP_ELEM, &mut attributes) }.map(|_| value)
    }

    /// Sets the value.
    pub fn set(&self, value: &T) -> Result<(), Errno> {
        let key = 0u32;
        let mut attributes = self.element(&key, address(value));
        // SAFETY: as in `get`, except that the command only reads the value.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
    }

    fn element(&self, key: &u32, value: u64) -> ElementAttributes {
        ElementAttributes { map: self.number(), key: address(key), value, ..Default::default() }
    }
}

/// A map from numbers of receive queues to AF_XDP sockets.
#[derive(Debug)]
pub struct SocketMap(OwnedFd);

impl SocketMap {
    /// Creates an empty map for this number of queues.
    pub fn new(entries: u32) -> Result<SocketMap, Errno> {
        let mut attributes =
            MapAttributes { kind: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, entries, flags: 0 };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new
        // descriptor.
        Ok(SocketMap(unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &mut attributes)?) }))
    }
    /// The descriptor of the map. Instructions refer to the map by this number.
    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
    /// The descriptor of the map.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
    /// Sets the socket for a queue. The kernel removes a socket from its maps when the socket is closed.
    pub fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let value = socket.as_raw_fd();
        let (key, value) = (address(&queue), address(&value));
        let mut attributes = ElementAttributes { map: self.number(), key, value, ..Default::default() };
        // SAFETY: the map was made for keys and values of four bytes. The command reads both, and they live during the
        // call.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
    }
    /// Removes the socket of a queue, if there is one.
    pub fn remove(&self, queue: u32) -> Result<(), Errno> {
        let mut attributes =
            ElementAttributes { map: self.number(), key: address(&queue), ..Default::default() };
        // SAFETY: the map was made for keys of four bytes. The command reads the key, which lives during the call.
        match unsafe { bpf(MAP_DELETE_ELEM, &mut attributes) } {
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e),
        }
    }
}

/// Where the kernel runs an XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has done anything with the frame.
    Driver,
    /// After the driver, for any device, with a copy of the frame in many cases. Slower.
    Generic,
}

/// A loaded program, which the kernel has verified.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Loads an XDP program.
    pub fn load(operations: &[Operation]) -> Result<Program, Errno> {
        Program::load_as(PROG_TYPE_XDP, 0, operations)
    }

    /// Loads an XDP program that accepts frames in several pieces of memory, if the kernel knows such programs.
    pub fn load_for_fragments(operations: &[Operation]) -> Result<Program, Errno> {
        match Program::load_as(PROG_TYPE_XDP, ACCEPTS_FRAGMENTS, operations) {
            Err(Errno::INVAL) => Program::load(operations),
            loaded => loaded,
        }
    }

    /// Returns the loaded program with an identifier, whoever loaded it.
    pub fn with_id(id: u32) -> Result<Program, Errno> {
        // The identifier, and two numbers that this command does not use.
        let mut attributes = [id, 0, 0];
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new descriptor.
        unsafe { bpf(PROG_GET_FD_BY_ID, &mut attributes) }
            .map(|fd| Program(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number of runs of the program and the time that they took, while the kernel counted them (see [`count_runs`]).
    pub fn runs(&self) -> std::io::Result<(u64, Duration)> {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        let number = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        };
        match (number("run_cnt:"), number("run_time_ns:")) {
            (Some(runs), Some(time)) => Ok((runs, Duration::from_nanos(time))),
            _ => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// Makes a device run this XDP program for each frame that it receives. The program stays attached while any
    /// process has the returned descriptor open.
    pub fn attach_as_xdp(&self, device: u32, mode: XdpMode) -> Result<OwnedFd, Errno> {
        let flags = match mode {
            XdpMode::Generic => 1 << 1,
            XdpMode::Driver => 1 << 2,
        };
        self.attach(device, AT_XDP, flags)
    }

    /// Attaches a program to the ingress of a device. The program stays attached while any process has the
    /// returned descriptor open.
    pub fn attach_to_ingress(operations: &[Operation], device: u32) -> Result<OwnedFd, Errno> {
        let program = Program::load_as(PROG_TYPE_SCHED_CLS, 0, operations)?;
        program.attach(device, TCX_INGRESS, BEFORE)
    }

    /// Attaches the program to a place of a device. It stays attached while any process has the returned descriptor open.
    fn attach(&self, device: u32, place: u32, flags: u32) -> Result<OwnedFd, Errno> {
        let program = self.0.as_raw_fd();
        let mut attributes = LinkAttributes { program, device, place, flags, ..Default::default() };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers. The result is a new descriptor.
        unsafe { bpf(LINK_CREATE, &mut attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
    }

    /// Makes a device run this program instead of the one that `link` attached. Frames are processed by one or the other.
    pub fn replace(&self, link: BorrowedFd<'_>) -> Result<(), Errno> {
        let (link, program) = (link.as_raw_fd(), self.0.as_raw_fd());
        let mut attributes = UpdateAttributes { link, program, ..Default::default() };
        // SAFETY: the command reads the numbers in `attributes`, which has no pointers.
        unsafe { bpf(LINK_UPDATE, &mut attributes) }.map(drop)
    }

    /// Loads an XDP program, and returns the messages of the kernel's verifier if it refuses the program.
    pub fn load_explained(operations: &[Operation]) -> Result<Program, (Errno, String)> {
        match Program::load_for_fragments(operations) {
            Ok(program) => Ok(program),
            Err(first) => {
                let load = |level| {
                    let mut log = vec![0u8; LOG];
                    Program::load_with(
                        PROG_TYPE_XDP,
                        ACCEPTS_FRAGMENTS,
                        operations,
                        (level, &mut log),
                        LICENSE,
                    )
                    .map_err(|e| (e, text(&log)))
                };
                let loaded = match load(STEPS) {
                    // A kernel before Linux 6.4 keeps the start of a log that is too long. Without the steps, it has room for the complaint.
                    Err((Errno::NOSPC, log)) if !log.contains("\nprocessed ") => load(COMPLAINTS),
                    loaded => loaded,
                };
                loaded.map_err(|(_, log)| (first, log))
            }
        }
    }

    /// Runs the program on one frame, without effect on the system. Returns the result, and the frame with the metadata
    /// before it.
    pub fn test(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), Errno> {
        let mut out = vec![0u8; frame.len() + 512];
        let mut attributes = RunAttributes {
            program: self.0.as_fd().as_raw_fd(),
            size_in: u32::try_from(frame.len()).map_err(|_| Errno::TOOBIG)?,
            size_out: u32::try_from(out.len()).map_err(|_| Errno::TOOBIG)?,
            data_in: address(frame),
            data_out: out.as_mut_ptr().expose_provenance() as u64,
            repeat: 1,
            ..Default::default()
        };
        // SAFETY: the frame is `size_in` bytes long, and `out` `size_out` bytes; both live during the call, which reads
        // the first and writes the second.
        unsafe { bpf(PROG_TEST_RUN, &mut attributes) }?;
        out.truncate(attributes.size_out as usize);
        Ok((attributes.result, out))
    }

    fn load_as(kind: u32, flags: u32, operations: &[Operation]) -> Result<Program, Errno> {
        Program::load_with(kind, flags, operations, (0, &mut []), LICENSE)
    }

    /// Loads a program. The kernel's verifier writes its messages of a level into `log`, if that has room.
    fn load_with(
        kind: u32,
        flags: u32,
        operations: &[Operation],
        (level, log): (u32, &mut [u8]),
        license: &CStr,
    ) -> Result<Program, Errno> {
        let log_size = u32::try_from(log.len()).map_err(|_| Errno::TOOBIG)?;
        let log = if level > 0 { log.as_mut_ptr().expose_provenance() as u64 } else { 0 };
        let count = u32::try_from(operations.len()).map_err(|_| Errno::TOOBIG)?;
        let mut attributes = LoadAttributes {
            kind,
            count,
            operations: address(operations),
            license: address(license.to_bytes_with_nul()),
            log_level: level,
            log_size,
            log,
            flags,
            name: *b"castanet\0\0\0\0\0\0\0\0",
            ..Default::default()
        };
        // SAFETY: the pointers are to `count` instructions, to a zero-terminated text, and to `log_size` bytes that the call
        // may write, or to none. All live during the call, which copies the first two. The kernel verifies the program. The result is a new descriptor.
        unsafe { bpf(PROG_LOAD, &mut attributes) }.map(|fd| Program(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Runs the program on copies of `frame` and carries out its decisions, `repeat` times or until a signal arrives.
    fn run(&self, frame: &[u8], repeat: u32) -> Result<(), Errno> {
        let mut attributes = RunAttributes {
            program: self.0.as_fd().as_raw_fd(),
            size_in: u32::try_from(frame.len()).map_err(|_| Errno::TOOBIG)?,
            data_in: address(frame),
            repeat,
            flags: LIVE_FRAMES,
            ..Default::default()
        };
        // SAFETY: the frame is `size_in` bytes long and lives during the call, which copies it. The call
        // writes only to the attributes.
        match unsafe { bpf(PROG_TEST_RUN, &mut attributes) } {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Runs the program on one frame.
    pub fn run_once(&self, frame: &[u8]) -> Result<(), Errno> {
        self.run(frame, 1)
    }

    /// Calls `meanwhile` on another thread, and runs the program repeatedly until `meanwhile` has returned.
    pub fn run_during<T: Send>(
        &self,
        frame: &[u8],
        meanwhile: impl FnOnce() -> T + Send,
    ) -> Result<T, Errno> {
        listen()?;
        // SAFETY: pthread_self() has no preconditions.
        let me = unsafe { libc::pthread_self() };
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let result = meanwhile();
                // Send the signal repeatedly, because a signal that arrives before the run begins does not
                // interrupt it.
                while !ended.load(Ordering::Acquire) {
                    // SAFETY: thread `me` has not ended, because it is in this function and waits for this
                    // thread.
                    unsafe { libc::pthread_kill(me, SIGNAL) };
                    std::thread::sleep(Duration::from_millis(1));
                }
                result
            });
            let done = self.run(frame, i32::MAX.unsigned_abs());
            ended.store(true, Ordering::Release);
            let result = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done.map(|()| result)
        })
    }
}

/// Makes the kernel count the runs of all programs, and their time, while the returned descriptor is open (Linux 5.8).
pub fn count_runs() -> Result<OwnedFd, Errno> {
    // The kind of the statistics: BPF_STATS_RUN_TIME.
    let mut attributes = 0u32;
    // SAFETY: the command reads a number. The result is a new descriptor.
    unsafe { bpf(ENABLE_STATS, &mut attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

extern "C" fn ignore(_: libc::c_int) {}

/// Installs a handler for [`SIGNAL`]. If the signal were ignored, it would not interrupt the run; by its default
/// action, it would kill the process.
fn listen() -> Result<(), Errno> {
    // SAFETY: all bytes zero is a valid sigaction: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = (ignore as extern "C" fn(libc::c_int)) as libc::sighandler_t;
    // SAFETY: the handler takes the number of the signal, as required without SA_SIGINFO, and does nothing, so
    // it may run at any time. The pointer for the old action is null.
    let r = unsafe { libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) };
    if r < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}
