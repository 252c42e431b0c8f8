// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled programs: they replace the plain program that passes all frames to AF_XDP sockets.

use super::steering::{Attachment, Steering, plain};
use super::verifier::{Refusal, too_large};
use crate::device::bpf::{Map, MapKind, MapShape, Operation, PartMap, Program, SharedWords, SocketMap};
use crate::device::error::{DeviceError, LOADS, lacking, wanted};
use crate::device::facts;
use crate::opener;
use castanet_kernel::instruction::code;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The action that errors name when loading fails.
pub(crate) const LOAD: &str = "load its XDP program";

/// The action that errors name when pinning fails.
pub(crate) const PIN: &str = "keep its XDP program alive";
/// The number of the map of a program's parts among maps that have numbers. That of the map of sockets is 0.
pub(crate) const PARTS: u32 = i32::MAX.cast_unsigned();

/// The time in nanoseconds on the clock that programs read.
pub fn program_time() -> u64 {
    time_of(ClockId::MonotonicCoarse)
}

/// The time in nanoseconds on the exact clock that programs read.
pub fn exact_program_time() -> u64 {
    time_of(ClockId::Monotonic)
}

fn time_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let [seconds, nanoseconds] = [now.tv_sec, now.tv_nsec].map(|n| u64::try_from(n).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// A map of programs, with its number in the process that opens devices, if that process made it.
#[derive(Debug)]
pub struct ProgramMap {
    map: Map,
    number: Option<u32>,
}

impl ProgramMap {
    /// Makes a map for programs of devices, of which `device` is one.
    ///
    /// # Errors
    /// When the kernel refuses, or the process that opens devices does.
    pub fn new(device: &str, shape: MapShape) -> Result<ProgramMap, DeviceError> {
        if let Some(opener) = opener::client() {
            let (number, fd) = opener.map(device, shape)?;
            return Ok(ProgramMap { map: Map::of(fd, shape), number: Some(number) });
        }
        let map = Map::new(shape).map_err(|e| map_error(device, shape, e))?;
        Ok(ProgramMap { map, number: None })
    }
    /// Makes a map of devices, by their numbers in `names`.
    ///
    /// # Errors
    /// When a device is missing, or as [`ProgramMap::new`].
    pub fn of_devices(device: &str, names: &[String]) -> Result<ProgramMap, DeviceError> {
        let entries = u32::try_from(names.len().max(1)).unwrap_or(u32::MAX);
        let map = ProgramMap::new(device, MapShape { kind: MapKind::Devices, key: 4, value: 4, entries })?;
        for (number, name) in (0u32..).zip(names) {
            let index = facts::index(name)?;
            let done = map.map.set(&number.to_ne_bytes(), &index.to_ne_bytes());
            done.map_err(|e| DeviceError::from_errno(name, "send to it by XDP", e))?;
        }
        Ok(map)
    }
    /// The value of a map of kind [`MapKind::Shared`] for programs of devices, of which `device` is one.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn words(&self, device: &str) -> Result<SharedWords, DeviceError> {
        SharedWords::of(&self.map)
            .map_err(|e| DeviceError::from_errno(device, "map data of its XDP program", e))
    }
    /// Keeps the map alive if the router dies, instead of the one before, where that is wanted. The first numbers of the map's value are counts of
    /// packets that could not go up, one for each of `devices` devices.
    ///
    /// # Errors
    /// When the kernel refuses, or the process that opens devices does.
    pub fn pin(&self, device: &str, devices: u32) -> Result<(), DeviceError> {
        if !super::is_pinned() {
            return Ok(());
        }
        match (self.number, opener::client()) {
            (Some(number), Some(opener)) => opener.pin(device, number, devices),
            _ => {
                super::pin_counts(self.map.fd(), devices).map_err(|e| DeviceError::from_errno(device, PIN, e))
            }
        }
    }
    /// The map.
    pub fn map(&self) -> &Map {
        &self.map
    }
}

impl Drop for ProgramMap {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // If the process that opens devices has ended, so have its descriptors.
            let _ = opener::client().map(|o| o.forget("a map", number));
        }
    }
}

/// The error for a map that the kernel did not make.
pub(crate) fn map_error(device: &str, shape: MapShape, e: Errno) -> DeviceError {
    match too_large(shape, e) {
        Some(why) => DeviceError::Refused { name: device.to_owned(), doing: LOAD, why },
        None => DeviceError::from_errno(device, LOAD, e),
    }
}

/// A map that a program uses.
#[derive(Clone, Copy, Debug)]
pub enum MapRef<'a> {
    /// The sockets of the device.
    Sockets,
    /// The parts of the program.
    Parts,
    /// Another one.
    Made(&'a ProgramMap),
}

/// Makes a device run a program instead of the plain one. A receiver for the device must be open. The program has parts, of which the first
/// one runs for each frame. In their instructions, the constant of an instruction that loads a map is the index of the map in `maps`.
///
/// # Errors
/// When the kernel refuses the program: its reason.
pub fn run_program(device: &str, parts: &[Vec<Operation>], maps: &[MapRef<'_>]) -> Result<(), DeviceError> {
    load(device, parts, maps, true)
}

/// Checks that the kernel accepts a program, which has the form that [`run_program`] takes. The program does not run.
///
/// # Errors
/// When the kernel refuses the program: its reason.
pub fn check_program(device: &str, parts: &[Vec<Operation>], maps: &[MapRef<'_>]) -> Result<(), DeviceError> {
    load(device, parts, maps, false)
}

/// Makes a device run the plain program again, which passes all frames to the receiver.
///
/// # Errors
/// When no receiver for the device is open, or the kernel refuses.
pub fn run_plain(device: &str) -> Result<(), DeviceError> {
    match steering(device)?.attachment() {
        Ok(attachment) => attachment.replace_by_plain(device),
        Err(number) => opener::client().ok_or_else(|| missing(device))?.plain(device, number),
    }
}

fn missing(device: &str) -> DeviceError {
    DeviceError::from_errno(device, LOAD, Errno::BADF)
}

fn steering(device: &str) -> Result<Arc<Steering>, DeviceError> {
    let index = facts::link_info(device)?.index;
    Steering::existing(index).ok_or_else(|| DeviceError::from_errno(device, LOAD, Errno::NODEV))
}

fn load(device: &str, parts: &[Vec<Operation>], maps: &[MapRef<'_>], runs: bool) -> Result<(), DeviceError> {
    let number = |i: usize| match maps.get(i)? {
        MapRef::Sockets => Some(0),
        MapRef::Parts => Some(PARTS),
        MapRef::Made(m) => m.number,
    };
    match steering(device)?.attachment() {
        Ok(attachment) => attachment.replace(device, parts, runs, |i| match maps.get(i)? {
            MapRef::Sockets => Some(Used::Sockets),
            MapRef::Parts => Some(Used::Parts),
            MapRef::Made(m) => Some(Used::Fd(m.map.fd())),
        }),
        Err(attachment) => {
            let opener = opener::client().ok_or_else(|| missing(device))?;
            let parts: Option<Vec<_>> = parts.iter().map(|p| renumbered(p, number)).collect();
            opener.load(device, attachment, &parts.ok_or_else(|| missing(device))?, runs)
        }
    }
}

/// A map that a program is loaded with.
pub(crate) enum Used<'a> {
    Sockets,
    Parts,
    Fd(BorrowedFd<'a>),
}

/// A loaded program: the first part, and the map of all parts if there are others.
#[derive(Debug)]
struct Loaded {
    first: Program,
    parts: Option<PartMap>,
}

impl Loaded {
    /// Loads the parts of a program, in which maps have numbers.
    fn new<'a>(
        device: &str,
        parts: &[Vec<Operation>],
        sockets: BorrowedFd<'a>,
        map: impl Fn(usize) -> Option<Used<'a>>,
    ) -> Result<Loaded, DeviceError> {
        let failed = |e| DeviceError::from_errno(device, LOAD, e);
        let count = u32::try_from(parts.len()).map_err(|_| failed(Errno::TOOBIG))?;
        let calls = (count > 1).then(|| PartMap::new(count)).transpose().map_err(failed)?;
        let part = |number: usize| {
            let operations = parts.get(number).ok_or_else(|| missing(device))?;
            let operations = with_maps(operations, |i| match map(i)? {
                Used::Sockets => Some(sockets),
                Used::Parts => calls.as_ref().map(PartMap::fd),
                Used::Fd(fd) => Some(fd),
            });
            explained(device, number, &operations.ok_or_else(|| missing(device))?)
        };
        let first = part(0)?;
        for number in 1..count {
            let program = part(number as usize)?;
            calls.as_ref().map_or(Ok(()), |c| c.set(number, &program)).map_err(failed)?;
        }
        Ok(Loaded { first, parts: calls })
    }
}

/// A program that is loaded, but attached to no device. For tests: it runs on given frames, without effect on the system.
#[derive(Debug)]
pub struct Trial {
    program: Loaded,
    _sockets: SocketMap,
    _socket: OwnedFd,
}

impl Trial {
    /// Loads a program, which has the form that [`run_program`] takes. Its map of sockets has one socket, for queue 0.
    ///
    /// # Errors
    /// When the kernel refuses the program: its reason.
    pub fn load(parts: &[Vec<Operation>], maps: &[MapRef<'_>]) -> Result<Trial, DeviceError> {
        let failed = |e| DeviceError::from_errno("a trial", LOAD, e);
        let sockets = SocketMap::new(1).map_err(failed)?;
        let socket = super::open_socket("a trial")?;
        sockets.set(0, socket.as_fd()).map_err(failed)?;
        let program = Loaded::new("a trial", parts, sockets.fd(), |i| match maps.get(i)? {
            MapRef::Sockets => Some(Used::Sockets),
            MapRef::Parts => Some(Used::Parts),
            MapRef::Made(m) => Some(Used::Fd(m.map.fd())),
        })?;
        Ok(Trial { program, _sockets: sockets, _socket: socket })
    }
    /// Runs the program on a frame. Returns its result, and the frame with the metadata before it.
    ///
    /// # Errors
    /// When the kernel cannot run it, for example because the frame is too short.
    pub fn run(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), DeviceError> {
        self.program.first.test(frame).map_err(|e| DeviceError::from_errno("a trial", "run", e))
    }
}

/// Loads a part of a program, of which the maps are descriptors.
pub(crate) fn explained(
    device: &str,
    part: usize,
    instructions: &[Operation],
) -> Result<Program, DeviceError> {
    Program::load_explained(instructions).map_err(|(e, log)| match e {
        // Without CAP_PERFMON, the kernel loads some programs, and refuses others as it refuses wrong ones.
        _ if e == Errno::PERM || !lacking(&LOADS).is_empty() => {
            DeviceError::NotPermitted { name: device.to_owned(), doing: LOAD, capability: wanted(&LOADS) }
        }
        _ => DeviceError::Unverified { name: device.to_owned(), refusal: Refusal::new(part, e, &log) },
    })
}

/// Whether an instruction loads a map.
fn loads_map(i: &Operation) -> bool {
    i.code == code::WIDE && (i.from() == code::MAP || i.from() == code::MAP_VALUE)
}

/// Replaces the number of each map that `instructions` load. None if a number is wrong.
pub(crate) fn renumbered(
    instructions: &[Operation],
    number: impl Fn(usize) -> Option<u32>,
) -> Option<Vec<Operation>> {
    let change = |i: &Operation| match loads_map(i) {
        true => {
            let immediate = number(usize::try_from(i.immediate).ok()?)?.cast_signed();
            Some(Operation { immediate, ..*i })
        }
        false => Some(*i),
    };
    instructions.iter().map(change).collect()
}

/// Replaces the number of each map by its descriptor.
pub(crate) fn with_maps<'a>(
    instructions: &[Operation],
    map: impl Fn(usize) -> Option<BorrowedFd<'a>>,
) -> Option<Vec<Operation>> {
    renumbered(instructions, |i| Some(map(i)?.as_raw_fd().cast_unsigned()))
}

impl Attachment {
    /// Loads the parts of a program, in which maps have numbers. Makes the device run it if `runs`; the former one goes on if the
    /// kernel refuses the new one.
    pub(crate) fn replace<'a>(
        &'a self,
        device: &str,
        parts: &[Vec<Operation>],
        runs: bool,
        map: impl Fn(usize) -> Option<Used<'a>>,
    ) -> Result<(), DeviceError> {
        let program = Loaded::new(device, parts, self.sockets(), map)?;
        if !runs {
            return Ok(());
        }
        self.run(&program.first, program.parts).map_err(|e| DeviceError::from_errno(device, LOAD, e))
    }
    /// Makes the device run the plain program.
    pub(crate) fn replace_by_plain(&self, device: &str) -> Result<(), DeviceError> {
        let plain = plain(self.sockets().as_raw_fd());
        let program = Program::load_for_fragments(&plain);
        let done = program.and_then(|p| self.run(&p, None));
        done.map_err(|e| DeviceError::from_errno(device, LOAD, e))
    }
}
