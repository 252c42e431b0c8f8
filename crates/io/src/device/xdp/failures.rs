// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts frames that a program has redirected to a device, and that were not sent: its queue is full, the frame is longer than its
//! MTU, it is down, or its driver cannot send redirected frames. The kernel reports them only by tracepoints.

use super::program::ProgramMap;
use crate::device::bpf::{Map, MapKind, MapShape, Operation, at_tracepoint, id_of};
use crate::device::btf::Btf;
use crate::device::error::DeviceError;
use crate::device::facts;
use castanet_kernel::instruction::{code, helper};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

/// The most devices and redirections to watch.
const ENTRIES: u32 = 4096;
const WATCH: &str = "count what it does not send";

/// The offsets in the kernel's structures that lead from a device to its interface index and its namespace.
#[derive(Clone, Copy, Debug)]
struct Offsets {
    index: u32,
    net: u32,
    number: u32,
}

impl Offsets {
    fn of_kernel() -> Option<Offsets> {
        let btf = Btf::of_kernel()?;
        Some(Offsets {
            index: btf.offset("net_device", "ifindex")?,
            net: btf.offset("net_device", "nd_net")?,
            number: btf.offset("net", "ns")?.checked_add(btf.offset("ns_common", "inum")?)?,
        })
    }
}

/// Registers and places of the programs.
const CONTEXT: u8 = 1;
const STACK: u8 = 10;
const DEVICE: u8 = 6;
const MORE: u8 = 7;
/// The offset of argument `n` of a tracepoint.
const fn argument(n: i16) -> i16 {
    8 * n
}
const LOAD_DOUBLE: u8 = 0x79;
const STORE_WORD: u8 = 0x63;
const ATOMIC: u8 = 0xdb;
const COPY: u8 = code::ALU64 | code::MOV | code::REGISTER;
const SET: u8 = code::ALU64 | code::MOV;
const ADD: u8 = code::ALU64 | code::ADD;

/// Adds register 7 to the value of the key of 8 bytes below the top of the stack, if the map has that key, and ends the program.
fn add_to(map: i32) -> Vec<Operation> {
    vec![
        Operation::new(code::WIDE, 1, code::MAP, 0, map),
        Operation::new(0, 0, 0, 0, 0),
        Operation::new(COPY, 2, STACK, 0, 0),
        Operation::new(ADD, 2, 0, 0, -8),
        Operation::new(code::CALL, 0, 0, 0, helper::MAP_LOOKUP),
        Operation::new(code::JUMP | code::JEQ, 0, 0, 1, 0),
        Operation::new(ATOMIC, 0, MORE, 0, 0),
        Operation::new(SET, 0, 0, 0, 0),
        Operation::new(code::EXIT, 0, 0, 0, 0),
    ]
}

/// Reads `size` bytes at the address in register 3 to the stack.
fn read(to: i32, size: i32) -> [Operation; 4] {
    [
        Operation::new(COPY, 1, STACK, 0, 0),
        Operation::new(ADD, 1, 0, 0, to),
        Operation::new(SET, 2, 0, 0, size),
        Operation::new(code::CALL, 0, 0, 0, helper::PROBE_READ_KERNEL),
    ]
}

/// The program at `xdp_devmap_xmit`, whose arguments are the device that has received, the device that sends, the numbers of frames sent
/// and not sent, and an error. The key is the interface index of the sending device, and the number of its namespace.
fn transmission(map: i32, offsets: Offsets) -> Vec<Operation> {
    let from_device = |offset: u32| {
        [Operation::new(COPY, 3, DEVICE, 0, 0), Operation::new(ADD, 3, 0, 0, offset.cast_signed())]
    };
    let mut all = vec![
        Operation::new(LOAD_DOUBLE, DEVICE, CONTEXT, argument(1), 0),
        Operation::new(LOAD_DOUBLE, MORE, CONTEXT, argument(3), 0),
        // Nearly always all frames are sent.
        Operation::new(code::JUMP | code::JNE, MORE, 0, 2, 0),
        Operation::new(SET, 0, 0, 0, 0),
        Operation::new(code::EXIT, 0, 0, 0, 0),
    ];
    all.extend(from_device(offsets.index));
    all.extend(read(-8, 4));
    all.extend(from_device(offsets.net));
    all.extend(read(-16, 8));
    all.push(Operation::new(LOAD_DOUBLE, 3, STACK, -16, 0));
    all.push(Operation::new(ADD, 3, 0, 0, offsets.number.cast_signed()));
    all.extend(read(-4, 4));
    all.extend(add_to(map));
    all
}

/// The program at `xdp_redirect_err`, whose arguments are the device that has received, the program, the target, an error, the type and the
/// identifier of the map, and the index in it. The key is the index and the identifier.
fn redirection(map: i32) -> Vec<Operation> {
    let mut all = vec![
        Operation::new(LOAD_DOUBLE, 2, CONTEXT, argument(6), 0),
        Operation::new(STORE_WORD, STACK, 2, -8, 0),
        Operation::new(LOAD_DOUBLE, 2, CONTEXT, argument(5), 0),
        Operation::new(STORE_WORD, STACK, 2, -4, 0),
        Operation::new(SET, MORE, 0, 0, 1),
    ];
    all.extend(add_to(map));
    all
}

fn key(words: [u32; 2]) -> [u8; 8] {
    let [a, b] = words.map(u32::to_ne_bytes);
    let mut key = [0; 8];
    key.iter_mut().zip(a.into_iter().chain(b)).for_each(|(to, from)| *to = from);
    key
}

/// A watched device, with its count when the watch began.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    device: [u8; 8],
    redirection: [u8; 8],
    before: u64,
}

/// Counts frames that devices have not sent after a redirection, while it exists.
#[derive(Debug)]
pub struct SendFailures {
    transmissions: Map,
    redirections: Map,
    /// The number of this network namespace.
    namespace: u32,
    _programs: [OwnedFd; 2],
}

impl SendFailures {
    /// Begins to count. This needs CAP_BPF and CAP_PERFMON.
    ///
    /// # Errors
    /// The reason, if the kernel does not support it or does not permit it.
    pub fn new() -> Result<SendFailures, String> {
        let text = |e: Errno| crate::error::system_text(&e.into());
        let offsets =
            Offsets::of_kernel().ok_or("the kernel does not tell its types (CONFIG_DEBUG_INFO_BTF)")?;
        let shape = MapShape { kind: MapKind::Hash, key: 8, value: 8, entries: ENTRIES };
        let (transmissions, redirections) = (Map::new(shape).map_err(text)?, Map::new(shape).map_err(text)?);
        let here = std::fs::metadata("/proc/self/ns/net").map_err(|e| crate::error::system_text(&e))?;
        let sent = transmission(transmissions.fd().as_raw_fd(), offsets);
        let redirected = redirection(redirections.fd().as_raw_fd());
        let programs = [
            at_tracepoint(c"xdp_devmap_xmit", &sent).map_err(text)?,
            at_tracepoint(c"xdp_redirect_err", &redirected).map_err(text)?,
        ];
        // The number is the inode number, which has 32 bits.
        let namespace = here.ino() as u32;
        Ok(SendFailures { transmissions, redirections, namespace, _programs: programs })
    }

    /// Watches the devices of a map of devices, in the order of their numbers in it. Call it before a program redirects by the map.
    ///
    /// # Errors
    /// When a device is missing, or the kernel refuses.
    pub fn watch(&self, map: &ProgramMap, devices: &[String]) -> Result<Vec<Watched>, DeviceError> {
        let watch = |(number, name): (u32, &String)| {
            let failed = |e| DeviceError::from_errno(name, WATCH, e);
            let id = id_of(map.map().fd()).map_err(failed)?;
            let device = key([facts::index(name)?, self.namespace]);
            let redirection = key([number, id]);
            let before = number_in(&self.transmissions, &device);
            if before.is_none() {
                self.transmissions.set(&device, &[0; 8]).map_err(failed)?;
            }
            self.redirections.set(&redirection, &[0; 8]).map_err(failed)?;
            Ok(Watched { device, redirection, before: before.unwrap_or(0) })
        };
        (0..).zip(devices).map(watch).collect()
    }

    /// The number of frames that a device has not sent since [`SendFailures::watch`].
    pub fn of(&self, watched: &Watched) -> u64 {
        let of_device = number_in(&self.transmissions, &watched.device).unwrap_or(watched.before);
        let redirected = number_in(&self.redirections, &watched.redirection).unwrap_or(0);
        of_device.wrapping_sub(watched.before).wrapping_add(redirected)
    }

    /// Stops watching redirections by a map that is no longer used.
    pub fn forget(&self, watched: &Watched) {
        // The entry may be gone already.
        let _ = self.redirections.remove(&watched.redirection);
    }
}

fn number_in(map: &Map, key: &[u8]) -> Option<u64> {
    let value = map.get(key).ok().flatten()?;
    Some(u64::from_ne_bytes(*value.first_chunk::<8>()?))
}
