// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live frames: the kernel itself generates and sends frames, much faster than a program could pass them to it.
//!
//! An XDP program decides when the next frame is due, and redirects it to a device. The kernel runs the
//! program repeatedly (`BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`), without a system call, copy or
//! allocation per frame.

use super::bpf::{Map, MapKind, MapShape, Operation, Program, Shared};
use super::error::{DeviceError, wanted};
use super::facts;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of bytes that the XDP program rewrites at the start of every frame before it sends the frame. This is needed
/// because the kernel reuses the memory of a sent frame for a later one, and a router that received the sent frame may
/// have changed its headers.
const HEADERS: usize = 48;
/// Valid lengths of frames in bytes: from the Ethernet minimum to the maximum that fits into a page together with
/// the kernel's data.
const LENGTHS: std::ops::RangeInclusive<usize> = 60..=3000;
/// Number of different frames that a [`LiveSender`] sends, see [`LiveFrame::flow`].
pub const LIVE_FLOWS: u8 = 64;

/// The frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFrame {
    /// The frame, 60 to 3000 bytes.
    pub bytes: Vec<u8>,
    /// Offsets of two bytes that differ between frames. The first byte counts from 0 to 63, the second from
    /// 63 to 0. Their sum is constant. So a checksum over them stays valid if both are high bytes, or both are low
    /// bytes, of their 16-bit words.
    pub flow: [u8; 2],
}

/// State shared by this process and the XDP program.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Pace {
    /// When the next frame is due, in nanoseconds of the monotonic clock; 0 if each is due at once.
    next: u64,
    /// Nanoseconds between frames.
    interval: u64,
    /// Frames sent.
    sent: u64,
    /// The time of the last run of the XDP program that read the monotonic clock, in nanoseconds; 0 before the first one.
    seen: u64,
}

/// Maximum time from the start of [`Program::run_during`] to the first run of the XDP program. Before that run,
/// the kernel changes some of its own data, and waits until all processors have seen the change.
const READY: Duration = Duration::from_secs(60);

/// Sends live frames on one device, or on several in turn.
///
/// If a device is a veth, the device at its other end receives live frames only by NAPI, see
/// [`receive_by_napi`](super::receive_by_napi).
#[derive(Debug)]
pub struct LiveSender {
    name: String,
    frame: Vec<u8>,
    pace: Shared<Pace>,
    /// The devices of the program, by their turn. A redirection by a map looks up no interface index.
    _devices: Map,
    program: Program,
}

impl LiveSender {
    /// Prepares to send a frame repeatedly on the device with this name.
    ///
    /// # Errors
    /// When the device is missing, the frame is unsuitable, the kernel is older than Linux 5.18, or the
    /// process lacks CAP_BPF and CAP_NET_ADMIN in the initial user namespace.
    pub fn open(name: &str, frame: LiveFrame) -> Result<LiveSender, DeviceError> {
        LiveSender::open_several(vec![(name.to_owned(), frame)])
    }

    /// Prepares to send frames on several devices in turn, one on each, so that all devices send at the same rate. The frames have
    /// the same length, and differ only in their first 48 bytes.
    ///
    /// # Errors
    /// As for [`LiveSender::open`], for any of the devices.
    pub fn open_several(frames: Vec<(String, LiveFrame)>) -> Result<LiveSender, DeviceError> {
        let indices = frames.iter().map(|(name, _)| facts::index(name)).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<&LiveFrame> = frames.iter().map(|(_, frame)| frame).collect();
        let name = frames.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let name = name.as_str();
        let failed = |errno| match errno {
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS => {
                DeviceError::Unsupported { name: name.to_owned(), what: "live frames (Linux 5.18)".into() }
            }
            Errno::PERM | Errno::ACCESS => DeviceError::NotPermitted {
                name: name.to_owned(),
                doing: "send live frames",
                capability: wanted(&["CAP_BPF", "CAP_NET_ADMIN"]),
            },
            errno => DeviceError::from_errno(name, "send live frames", errno),
        };
        let pace = Shared::new().map_err(failed)?;
        let devices = devices(&indices).map_err(failed)?;
        let maps = [pace.number(), devices.fd().as_raw_fd()];
        let operations = program(&all, maps).ok_or_else(|| DeviceError::Invalid {
            name: name.to_owned(),
            what: "no such live frames".into(),
        })?;
        let program = Program::load(&operations).map_err(failed)?;
        // A test run: no frame is ever due, so no frame is sent.
        pace.set(&Pace { next: u64::MAX, ..Pace::default() }).map_err(failed)?;
        let frame = frames.first().map(|(_, frame)| frame.bytes.clone()).unwrap_or_default();
        program.run_once(&frame).map_err(failed)?;
        Ok(LiveSender { name: name.to_owned(), frame, pace, _devices: devices, program })
    }

    /// The names of the devices.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends `rate` frames a second for the duration `time`. A rate of 0 means as fast as possible.
    ///
    /// Calls two functions on another thread. `at_start` is called just before the first frame. `at_end` is called
    /// at the end of the time, with the result of `at_start` and the number of frames sent so far. Frames are still
    /// sent during `at_end`. Returns the result of `at_end` and the total number of frames.
    ///
    /// # Errors
    /// When the kernel returns an error.
    pub fn send<S, T: Send>(
        &mut self,
        rate: f64,
        time: Duration,
        at_start: impl FnOnce() -> S + Send,
        at_end: impl FnOnce(S, u64) -> T + Send,
    ) -> Result<(T, u64), DeviceError> {
        let failed = |errno| DeviceError::from_errno(&self.name, "send live frames", errno);
        // The cast saturates; a rate below 0 counts as 0.
        let interval = if rate > 0.0 { (1e9 / rate) as u64 } else { 0 };
        // The kernel takes some hundredths of a second to start the program. No frame is due until `during` sets the
        // time of the first frame.
        let wait = Pace { next: u64::MAX, ..Pace::default() };
        self.pace.set(&wait).map_err(failed)?;
        let pace = &self.pace;
        let during = || {
            let deadline = Instant::now() + READY;
            while pace.get()?.seen == 0 {
                if Instant::now() > deadline {
                    return Err(Errno::TIMEDOUT);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            let started = at_start();
            let next = if interval == 0 { 0 } else { now() };
            pace.set(&Pace { next, interval, ..Pace::default() })?;
            std::thread::sleep(time);
            pace.get().map(|p| at_end(started, p.sent))
        };
        let result = self.program.run_during(&self.frame, during).map_err(failed)?.map_err(failed)?;
        Ok((result, self.pace.get().map_err(failed)?.sent))
    }
}

/// A map with the devices of these interface indices.
fn devices(indices: &[u32]) -> Result<Map, Errno> {
    let entries = u32::try_from(indices.len().max(1)).map_err(|_| Errno::INVAL)?;
    let map = Map::new(MapShape { kind: MapKind::Devices, key: 4, value: 4, entries })?;
    for (turn, index) in (0u32..).zip(indices) {
        map.set(&turn.to_ne_bytes(), &index.to_ne_bytes())?;
    }
    Ok(map)
}

/// The monotonic clock, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs().saturating_mul(1_000_000_000) + now.tv_nsec.unsigned_abs()
}

// Registers: 0 holds results, 1 to 5 hold arguments, and calls preserve 6 to 9.
const OUT: u8 = 0;
const NOW: u8 = 0;
const ARGUMENT: [u8; 3] = [1, 2, 3];
const SPARE: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;
const LIMIT: u8 = 4;
const WORD: u8 = 5;
const CONTEXT: u8 = 6;
const PACE: u8 = 7;
const COUNT: u8 = 8;
/// The place in the order of the devices.
const TURN: u8 = 9;

// Instruction codes. Each combines class, operation, size, and whether the source is a register (RFC 9669).
const LOAD64: u8 = 0x79;
const LOAD32: u8 = 0x61;
const STORE64: u8 = 0x7b;
const STORE8: u8 = 0x73;
const WIDE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x0f;
const ADD_NUMBER: u8 = 0x07;
const AND_NUMBER: u8 = 0x57;
const XOR_NUMBER: u8 = 0xa7;
const MODULO_NUMBER: u8 = 0x97;
const DIVIDE_NUMBER: u8 = 0x37;
const GO: u8 = 0x05;
const IF_NUMBER: u8 = 0x15;
const IF_NOT_NUMBER: u8 = 0x55;
const IF_LESS: u8 = 0xad;
const IF_GREATER: u8 = 0x2d;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const XDP_DROP: i32 = 1;
/// Marks a 64-bit immediate as a map, or as the address of a map's value.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

#[derive(Default)]
struct Assembler(Vec<Operation>);

impl Assembler {
    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.0.push(Operation::new(code, to, from, offset, immediate));
    }
    fn wide(&mut self, to: u8, from: u8, value: u64) {
        // The lower half of the value, then the upper half.
        self.put(WIDE, to, from, 0, value as u32 as i32);
        self.put(0, 0, 0, 0, (value >> 32) as u32 as i32);
    }
    /// Emits a jump whose distance is not known yet. Returns its index.
    fn jump(&mut self, code: u8, to: u8, from: u8) -> usize {
        self.put(code, to, from, 0, 0);
        self.0.len() - 1
    }
    /// Emits such a jump, which is taken unless the register has this value.
    fn jump_unless(&mut self, register: u8, value: i32) -> usize {
        self.put(IF_NOT_NUMBER, register, 0, 0, value);
        self.0.len() - 1
    }
    fn land(&mut self, jump: usize) -> Option<()> {
        let distance = i16::try_from(self.0.len().checked_sub(jump + 1)?).ok()?;
        self.0.get_mut(jump)?.offset = distance;
        Some(())
    }
}

/// Returns the XDP program, or `None` if the length of a frame or an offset is invalid, or the frames do not go together. The program
/// drops a frame that is not due yet. If a frame is due, the program writes the headers into the frame, counts the frame and
/// redirects it to the device whose turn it is. `frames` has the frame of each device; `pace` and `devices` are the
/// descriptors of the maps.
fn program(frames: &[&LiveFrame], [pace, devices]: [i32; 2]) -> Option<Vec<Operation>> {
    let first = frames.first()?;
    let valid = |f: &&LiveFrame| {
        LENGTHS.contains(&f.bytes.len())
            && f.flow.iter().all(|b| usize::from(*b) < *LENGTHS.start())
            && (f.flow, f.bytes.len()) == (first.flow, first.bytes.len())
    };
    if !frames.iter().all(valid) {
        return None;
    }
    let several = i32::try_from(frames.len()).ok().filter(|n| *n > 1);
    let mut a = Assembler::default();
    a.put(MOVE, CONTEXT, 1, 0, 0);
    a.wide(PACE, MAP_VALUE, u64::from(pace.unsigned_abs()));
    // As fast as possible, without reading the clock, if `next` is 0.
    a.put(LOAD64, DATA, PACE, 0, 0);
    let at_once = a.jump(IF_NUMBER, DATA, 0);
    a.put(CALL, 0, 0, 0, KTIME_GET_NS);
    a.put(STORE64, PACE, NOW, 24, 0);
    a.put(LOAD64, DATA, PACE, 0, 0);
    let early = a.jump(IF_LESS, NOW, DATA);
    // next += interval
    a.put(LOAD64, END, PACE, 8, 0);
    a.put(ADD, DATA, END, 0, 0);
    a.put(STORE64, PACE, DATA, 0, 0);
    a.land(at_once)?;
    // sent += 1
    a.put(LOAD64, COUNT, PACE, 16, 0);
    a.put(MOVE, SPARE, COUNT, 0, 0);
    a.put(ADD_NUMBER, SPARE, 0, 0, 1);
    a.put(STORE64, PACE, SPARE, 16, 0);
    // Load the start and end of the frame from the context, and check the length, as the verifier requires.
    a.put(LOAD32, DATA, CONTEXT, 0, 0);
    a.put(LOAD32, END, CONTEXT, 4, 0);
    a.put(MOVE, LIMIT, DATA, 0, 0);
    a.put(ADD_NUMBER, LIMIT, 0, 0, i32::try_from(*LENGTHS.start()).ok()?);
    let short = a.jump(IF_GREATER, LIMIT, END);
    if let Some(n) = several {
        a.put(MOVE, TURN, COUNT, 0, 0);
        a.put(MODULO_NUMBER, TURN, 0, 0, n);
        a.put(DIVIDE_NUMBER, COUNT, 0, 0, n);
    }
    let mut written = Vec::new();
    for (turn, frame) in (0i32..).zip(frames) {
        // The last device needs no test.
        let other = several.filter(|n| turn + 1 < *n).map(|_| a.jump_unless(TURN, turn));
        for (i, word) in frame.bytes.get(..HEADERS)?.as_chunks::<8>().0.iter().enumerate() {
            a.wide(WORD, 0, u64::from_ne_bytes(*word));
            a.put(STORE64, DATA, WORD, i16::try_from(8 * i).ok()?, 0);
        }
        if let Some(other) = other {
            written.push(a.jump(GO, 0, 0));
            a.land(other)?;
        }
    }
    for jump in written {
        a.land(jump)?;
    }
    let [up, down] = first.flow.map(i16::from);
    a.put(AND_NUMBER, COUNT, 0, 0, i32::from(LIVE_FLOWS - 1));
    a.put(STORE8, DATA, COUNT, up, 0);
    a.put(XOR_NUMBER, COUNT, 0, 0, i32::from(LIVE_FLOWS - 1));
    a.put(STORE8, DATA, COUNT, down, 0);
    a.wide(ARGUMENT[0], MAP, u64::from(devices.unsigned_abs()));
    match several {
        Some(_) => a.put(MOVE, ARGUMENT[1], TURN, 0, 0),
        None => a.put(SET, ARGUMENT[1], 0, 0, 0),
    }
    // The frame is dropped if there is no such device any more.
    a.put(SET, ARGUMENT[2], 0, 0, XDP_DROP);
    a.put(CALL, 0, 0, 0, REDIRECT_MAP);
    a.put(EXIT, 0, 0, 0, 0);
    a.land(early)?;
    a.land(short)?;
    a.put(SET, OUT, 0, 0, XDP_DROP);
    a.put(EXIT, 0, 0, 0, 0);
    Some(a.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(length: usize) -> LiveFrame {
        LiveFrame { bytes: (0..length).map(|i| i as u8).collect(), flow: [35, 43] }
    }

    #[test]
    fn programs_end_and_jump_to_their_end() {
        let all = program(&[&frame(60)], [3, 4]).unwrap();
        let n = all.len();
        let jumps: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, o)| [IF_LESS, IF_GREATER].contains(&o.code))
            .map(|(i, o)| i + 1 + usize::try_from(o.offset).unwrap())
            .collect();
        assert_eq!(jumps, [n - 2, n - 2]);
        assert_eq!(all[n - 2].immediate, XDP_DROP);
        assert_eq!((all[n - 1].code, all[n - 3].code), (EXIT, EXIT));
        // At a rate as high as possible, the program goes past the clock to the count.
        let at = all.iter().position(|o| o.code == IF_NUMBER).unwrap();
        let past = all.get(at + 1..at + 1 + usize::try_from(all[at].offset).unwrap()).unwrap();
        assert!(past[0].code == CALL && past[0].immediate == KTIME_GET_NS, "{past:?}");
        assert_eq!(all[at + 1 + past.len()], Operation::new(LOAD64, COUNT, PACE, 16, 0));
        // The constants that the program stores are the headers of the frame.
        let words = all.iter().zip(&all[1..]).filter(|(o, _)| o.code == WIDE && o.registers & 15 == WORD);
        let bytes: Vec<u8> = words
            .flat_map(|(a, b)| [a.immediate.to_ne_bytes(), b.immediate.to_ne_bytes()].concat())
            .collect();
        assert_eq!(bytes, frame(HEADERS).bytes);
    }

    #[test]
    fn devices_take_turns() {
        let frames = [7, 8, 9].map(|device| {
            let mut frame = frame(60);
            frame.bytes[0] = device;
            frame
        });
        let frames: Vec<&LiveFrame> = frames.iter().collect();
        let all = program(&frames, [3, 4]).unwrap();
        // Follows the program from the division, with the turn of each device.
        for (turn, device) in [(0, 7), (1, 8), (2, 9)] {
            let mut at = all.iter().position(|o| o.code == DIVIDE_NUMBER).unwrap() + 1;
            let mut first = None;
            loop {
                let o = all[at];
                let jumps = match o.code {
                    IF_NOT_NUMBER => o.immediate != turn,
                    GO => true,
                    _ => false,
                };
                if o.code == WIDE {
                    first.get_or_insert(o.immediate.to_ne_bytes()[0]);
                }
                if o.code == AND_NUMBER {
                    assert_eq!(first, Some(device));
                    break;
                }
                at = if jumps { at + 1 + usize::try_from(o.offset).unwrap() } else { at + 1 };
            }
        }
        assert!(all.contains(&Operation::new(MOVE, ARGUMENT[1], TURN, 0, 0)));
        let jumps = all.iter().filter(|o| o.code == GO);
        assert_eq!(jumps.count(), 2, "the last device needs no jump");
    }

    #[test]
    fn frames_that_cannot_be_sent() {
        for length in [0, 59, 3001] {
            assert_eq!(program(&[&frame(length)], [3, 4]), None);
        }
        assert_eq!(program(&[&LiveFrame { flow: [35, 60], ..frame(60) }], [3, 4]), None);
        assert!(program(&[&LiveFrame { flow: [0, 59], ..frame(3000) }], [3, 4]).is_some());
        assert_eq!(program(&[], [3, 4]), None);
        assert_eq!(program(&[&frame(60), &frame(61)], [3, 4]), None);
        assert!(matches!(LiveSender::open("no-such-device", frame(60)), Err(DeviceError::Missing { .. })));
    }
}
