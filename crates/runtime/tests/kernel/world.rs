// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices without a kernel: they deliver given frames, one each millisecond of simulated time, and record what is sent. With
//! programs, the frames first pass the interpreter of eBPF, as they would pass the programs in the kernel.

use crate::real::{Real, names, with_indices};
use castanet_classes::Registry;
use castanet_element::kernel::handover::{LONGEST, Points};
use castanet_element::kernel::interpreter::{Frame, Machine, Map, Run};
use castanet_element::kernel::order::{self, Ticket};
use castanet_element::kernel::{
    Code, Counter, Instruction, Lowered, MapName, PART, PASSED, Table, TableKind, instruction::code,
};
use castanet_element::prelude::*;
use castanet_element::{Attached, element};
use castanet_elements::device::come_up::{come_up, receive, send};
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{MapKind, MapShape, ProgramMap, program_time};
use castanet_runtime::Classes;
use castanet_runtime::kernel::{Fill, KernelDriver, Programs};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The Ethernet address of the device with this name.
pub fn address(device: &str) -> [u8; 6] {
    let last = device.bytes().last().unwrap_or(0) & 15;
    [2, 0, 0, 0, 0, last]
}

/// The surroundings of a router.
#[derive(Clone, Default)]
pub struct World(Arc<Inner>);

/// Frames with their times in milliseconds.
type Frames = VecDeque<(i64, Vec<u8>)>;

#[derive(Default)]
struct Inner {
    /// The time that programs see at the start.
    began: u64,
    /// The time in milliseconds between two readings of the frames that have come up; 0 if they are read at once.
    delay: AtomicI64,
    /// The most frames that are read together then.
    most: AtomicUsize,
    /// For each device, the frames that have come up and wait to be read.
    ring: Mutex<HashMap<String, Vec<Vec<u8>>>>,
    /// The frames that each device receives, with their times in milliseconds.
    frames: Mutex<HashMap<String, Frames>>,
    /// The sent frames: the device and the frame.
    sent: Mutex<Vec<(String, Vec<u8>)>>,
    kernel: Mutex<Side>,
    /// The size of the parts of programs; 0 if it is the default.
    part: AtomicUsize,
    /// The element of which the code is wrong in all programs that are only checked, so that the kernel refuses them.
    wrong: Mutex<Option<&'static str>>,
    /// Whether the kernel refuses programs that replace others of the same configuration.
    refuses: AtomicBool,
    /// Whether devices deliver all frames of one time together.
    bursts: AtomicBool,
    /// Whether paths at user level are machine code.
    compiled: AtomicBool,
}

/// The programs and maps in the kernel, and what was noticed there.
#[derive(Default)]
struct Side {
    machine: Machine,
    names: Vec<MapName>,
    /// The first part of each device's program.
    programs: HashMap<String, Vec<Instruction>>,
    /// The largest number of parts of a program so far.
    parts: usize,
    counters: Vec<Vec<Counter>>,
    devices: Vec<String>,
    /// Gives slots to entries of ordered tables.
    slots: order::Slots,
    /// The number of frames that elements of former programs have discarded.
    discarded: u64,
    /// The number of configurations so far. Tables of former ones are not used any more.
    configuration: u64,
    /// Frames that came up, and frames that did not.
    ways: (u64, u64),
    /// Instructions executed for frames that did not come up.
    executed: u64,
    /// The same programs and maps in the kernel, if they are compared.
    real: Option<Real>,
    /// The first fault that was found in a program.
    fault: Option<String>,
}

/// The number of discarded frames among counts.
fn discarded(counts: &[(Counter, u64)]) -> u64 {
    let discards =
        |c: &&(Counter, u64)| matches!(c.0, Counter::Dropped(_, r) if r == Reason::Discarded as u16);
    counts.iter().filter(discards).map(|c| c.1).sum()
}

impl World {
    /// Whether the kernel lets this process load programs.
    pub fn try_kernel() -> Result<(), DeviceError> {
        let shape = MapShape { kind: MapKind::Counters, key: 4, value: 8, entries: 1 };
        ProgramMap::new("a test", shape).map(drop)
    }
    /// A world that also runs all programs in the kernel, and compares.
    pub fn with_kernel() -> World {
        // Simulated times lie in the past of the kernel, but not by the default timeout of any class.
        let began = program_time() - 10_000_000_000;
        let side = Side { real: Some(Real::default()), ..Side::default() };
        World(Arc::new(Inner { began, kernel: Mutex::new(side), ..Inner::default() }))
    }
    /// Cuts programs into parts of about so many instructions.
    fn cut(self, part: usize) -> World {
        self.0.part.store(part, Ordering::Relaxed);
        self
    }
    /// A world in which programs are cut into parts of about `N` instructions.
    pub fn in_parts<const N: usize>() -> World {
        World::default().cut(N)
    }
    /// The same with the kernel.
    pub fn in_parts_with_kernel<const N: usize>() -> World {
        World::with_kernel().cut(N)
    }
    /// A world without a kernel, in which devices deliver all frames of one time together. Elements get them one by one.
    pub fn with_bursts(compiled: bool) -> World {
        let world = World::default();
        world.0.bursts.store(true, Ordering::Relaxed);
        world.0.compiled.store(compiled, Ordering::Relaxed);
        world
    }
    /// Whether devices deliver all frames of one time together.
    pub fn has_bursts(&self) -> bool {
        self.0.bursts.load(Ordering::Relaxed)
    }
    /// Whether paths at user level are machine code.
    pub fn is_compiled(&self) -> bool {
        self.0.compiled.load(Ordering::Relaxed)
    }
    /// From now on, the kernel refuses programs that replace others of the same configuration.
    pub fn refuse(&self) {
        self.0.refuses.store(true, Ordering::Relaxed);
    }
    /// From now on, the code of an element is wrong in all programs that are only checked.
    pub fn spoil(&self, element: Option<&'static str>) {
        *self.0.wrong.lock().unwrap() = element;
    }
    /// The largest number of parts of the programs so far.
    pub fn parts(&self) -> usize {
        self.0.kernel.lock().unwrap().parts
    }
    /// The time that programs see when `now` is the time of the router. It is never 0.
    fn time(&self, now: i64) -> u64 {
        self.0.began + (now - castanet_testkit::START) as u64 + 1
    }
    /// Lets a device receive a frame at a time in milliseconds.
    pub fn receive(&self, device: &str, at: i64, frame: Vec<u8>) {
        self.0.frames.lock().unwrap().entry(device.into()).or_default().push_back((at, frame));
    }
    /// Lets frames that come up wait until their device is read, each `period` milliseconds, at most so many of them.
    pub fn delay(&self, period: i64, most: usize) {
        self.0.delay.store(period, Ordering::Relaxed);
        self.0.most.store(most, Ordering::Relaxed);
    }
    /// The sent frames, with their devices.
    pub fn sent(&self) -> Vec<(String, Vec<u8>)> {
        self.0.sent.lock().unwrap().clone()
    }
    /// The first fault that was found in a program.
    pub fn fault(&self) -> Option<String> {
        self.0.kernel.lock().unwrap().fault.clone()
    }
    /// The number of frames that elements have discarded in the kernel, as Discard does.
    pub fn discarded(&self) -> u64 {
        let now = discarded(&self.counts());
        self.0.kernel.lock().unwrap().discarded + now
    }
    /// Whether all programs also run in the kernel.
    pub fn is_real(&self) -> bool {
        self.0.kernel.lock().unwrap().real.is_some()
    }
    /// Checks that the shared tables in the kernel have the words of those in the interpreter, if all programs also run in the kernel.
    pub fn check_shared_tables(&self) {
        let side = self.0.kernel.lock().unwrap();
        let Some(real) = &side.real else { return };
        for (i, name) in side.names.iter().enumerate().filter(|(_, n)| matches!(n, MapName::Table(..))) {
            let map = real.maps[i].as_ref().unwrap().map();
            if map.shape().kind == MapKind::Shared {
                let words = map.get(&ONLY).unwrap();
                assert!(words.as_deref() == side.machine.maps[i].get(&ONLY), "{name:?}: the words differ");
            }
        }
    }
    /// The numbers of frames that came up and that did not, and the instructions that were executed for the latter.
    pub fn ways(&self) -> (u64, u64, u64) {
        let side = self.0.kernel.lock().unwrap();
        (side.ways.0, side.ways.1, side.executed)
    }
}

/// A table of the interpreter. An ordered one has slots.
struct Entries {
    world: World,
    /// The number of the configuration.
    configuration: u64,
    name: MapName,
    ordered: bool,
}

impl Entries {
    /// The kernel, and the index of the map. None if the kernel has the tables of another configuration.
    fn side(&self) -> Option<(MutexGuard<'_, Side>, usize)> {
        let side = self.world.0.kernel.lock().unwrap();
        let map = side.names.iter().position(|n| *n == self.name)?;
        (side.configuration == self.configuration).then_some((side, map))
    }
}

/// The key of the value that has a word, and the offset of the word in it.
fn place(map: &Map, word: usize) -> ([u8; 4], usize) {
    let words = map.value_size() / 8;
    (((word / words) as u32).to_ne_bytes(), word % words * 8)
}

/// The index of the map of slots.
const SLOTS: usize = 3;
/// The key of a map's only value.
const ONLY: [u8; 4] = [0; 4];

impl Side {
    /// Changes a number in the table of slots. Returns the number before.
    fn change_slot(&mut self, index: u32, at: i32, change: impl FnOnce(u64) -> u64) -> u64 {
        let start = (index * order::ENTRY) as usize + at as usize;
        let value = self.machine.maps[SLOTS].get_mut(&ONLY).unwrap();
        let word = &mut value[start..start + 8];
        let before = u64::from_ne_bytes((&*word).try_into().unwrap());
        word.copy_from_slice(&change(before).to_ne_bytes());
        if let Some(real) = &self.real {
            real.maps[SLOTS].as_ref().unwrap().map().set(&ONLY, value).unwrap();
        }
        before
    }
}

impl order::Counters for Side {
    fn raise(&mut self, index: u32) -> u64 {
        self.change_slot(index, order::at::SENT, |n| n + 1)
    }
    fn done(&self, index: u32) -> u64 {
        let start = (index * order::ENTRY) as usize + order::at::DONE as usize;
        let value = self.machine.maps[SLOTS].get(&ONLY).unwrap();
        u64::from_ne_bytes(value[start..start + 8].try_into().unwrap())
    }
    fn set_done(&mut self, index: u32, number: u64) {
        self.change_slot(index, order::at::DONE, |_| number);
    }
}

impl Table for Entries {
    fn set(&self, key: &[u8], value: &[u8]) -> bool {
        let Some((mut side, map)) = self.side() else { return false };
        let mut value = value.to_vec();
        if self.ordered {
            let mut slots = std::mem::take(&mut side.slots);
            let slot = slots.take(&mut *side);
            side.slots = slots;
            value = order::closed(&value, slot);
        }
        let value = &value[..];
        if let Some(Some(real)) = side.real.as_ref().and_then(|r| r.maps.get(map)) {
            real.map().set(key, value).unwrap();
        }
        side.machine.maps.get_mut(map).is_some_and(|m| m.set(key, value).is_ok())
    }
    fn remove(&self, key: &[u8]) {
        let Some((mut side, map)) = self.side() else { return };
        if let Some(Some(real)) = side.real.as_ref().and_then(|r| r.maps.get(map)) {
            real.map().remove(key).unwrap();
        }
        let _ = side.machine.maps.get_mut(map).map(|m| m.remove(key));
    }
    fn clear(&self) {
        let keys = self.side().map(|(side, map)| side.machine.maps[map].keys()).unwrap_or_default();
        keys.iter().for_each(|key| self.remove(key));
    }
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (side, map) = self.side()?;
        side.machine.maps[map].get(key).map(<[u8]>::to_vec)
    }
    fn word(&self, index: usize) -> Option<u64> {
        let (side, map) = self.side()?;
        let map = &side.machine.maps[map];
        let (key, at) = place(map, index);
        Some(u64::from_ne_bytes(*map.get(&key)?.get(at..)?.first_chunk()?))
    }
    fn set_word(&self, index: usize, n: u64) -> bool {
        let Some((mut side, map)) = self.side() else { return false };
        let (key, at) = place(&side.machine.maps[map], index);
        let Some(value) = side.machine.maps[map].get_mut(&key) else { return false };
        let Some(word) = value.get_mut(at..).and_then(|v| v.first_chunk_mut()) else { return false };
        *word = n.to_ne_bytes();
        if let Some(real) = &side.real {
            let words = real.maps[map].as_ref().unwrap().words("a test").unwrap();
            words.words()[index].store(n, Ordering::SeqCst);
        }
        true
    }
    fn add_to_word(&self, index: usize, n: u64) -> Option<u64> {
        let before = self.word(index)?;
        self.set_word(index, before.wrapping_add(n)).then_some(before)
    }
    fn time(&self, now: i64) -> u64 {
        self.world.time(now)
    }
}

impl KernelDriver for World {
    fn part_size(&self) -> usize {
        match self.0.part.load(Ordering::Relaxed) {
            0 => PART,
            part => part,
        }
    }
    fn check(&self, programs: &Programs) -> Result<(), String> {
        let Some(wrong) = *self.0.wrong.lock().unwrap() else { return Ok(()) };
        let is_real = self.0.kernel.lock().unwrap().real.is_some();
        for (number, (_, device, program)) in programs.programs.iter().enumerate() {
            let of = |part: usize, at: usize| programs.element_of(device, part, at);
            let is_there = |part: usize, at: usize| {
                let single = program.parts[part].instructions[at].code & !code::DW != 0;
                single && of(part, at).is_some_and(|e| e.contains(&format!("'{wrong}'")))
            };
            let lengths = program.parts.iter().map(|p| p.instructions.len()).enumerate();
            let mut places = lengths.flat_map(|(part, length)| (0..length).map(move |at| (part, at)));
            let Some((part, at)) = places.find(|(part, at)| is_there(*part, *at)) else { continue };
            if !is_real {
                return Err(format!(
                    "the kernel refused the program for {device} at {}",
                    of(part, at).unwrap()
                ));
            }
            let shared = &programs.router.shared;
            let mut parts = with_indices(&names(shared), number, program);
            // A read behind the end of the stack.
            parts[part][at] = Instruction::new(code::LOAD | code::DW, 0, 10, 8, 0);
            match Real::new(shared).load(&parts).unwrap_err() {
                DeviceError::Unverified { refusal, .. } => {
                    let at =
                        refusal.instruction().and_then(|at| programs.element_of(device, refusal.part, at));
                    return Err(refusal.text(device, at.as_deref()));
                }
                e => return Err(e.to_string()),
            }
        }
        Ok(())
    }
    fn remove(&self) -> Vec<(Counter, u64)> {
        let counted = self.counts();
        self.0.kernel.lock().unwrap().programs.clear();
        counted
    }
    fn install(
        &self,
        programs: &Programs,
        anew: bool,
        fill: &mut Fill<'_>,
    ) -> Result<Vec<(Counter, u64)>, String> {
        if !anew && self.0.refuses.load(Ordering::Relaxed) {
            return Err("refused".into());
        }
        let counted = self.counts();
        let mut side = self.0.kernel.lock().unwrap();
        let shared = &programs.router.shared;
        let mut old = std::mem::take(&mut *side);
        side.configuration = old.configuration + u64::from(anew);
        if anew {
            old.names.clear();
        }
        (side.ways, side.executed, side.parts) = (old.ways, old.executed, old.parts);
        side.machine.limit = 1_000_000;
        side.slots = std::mem::take(&mut old.slots);
        side.names = names(shared);
        side.machine.maps = vec![
            Map::per_cpu_array(1, 8 * shared.counters.len().max(1)),
            Map::sockets(1),
            Map::devices(shared.devices.len().max(1) as u32),
            old.machine.maps.get(SLOTS).cloned().unwrap_or_else(|| Map::array(1, order::TABLE as usize)),
            Map::per_cpu_array(1, PASSED as usize),
        ];
        side.machine.maps[1].set(&0u32.to_ne_bytes(), &[0; 4]).unwrap();
        side.discarded = old.discarded + discarded(&counted);
        for number in 0..shared.devices.len() as u32 {
            side.machine.maps[2].set(&number.to_ne_bytes(), &[0; 4]).unwrap();
        }
        let mut real = old.real.as_ref().map(|_| Real::new(shared));
        if let Some(real) = &mut real {
            let slots = real.maps[SLOTS].as_ref().unwrap();
            slots.map().set(&ONLY, side.machine.maps[SLOTS].get(&ONLY).unwrap()).unwrap();
        }
        let mut tables: Vec<((u32, u32), Arc<dyn Table>)> = Vec::new();
        for (name, spec) in &shared.tables {
            let before = old.names.iter().position(|n| *n == MapName::Table(name.0, name.1));
            let map = match before {
                Some(i) => old.machine.maps[i].clone(),
                None if matches!(spec.kind, TableKind::Array | TableKind::Shared) => {
                    Map::array(spec.entries, spec.value as usize)
                }
                None => Map::hash(spec.entries, spec.key as usize, spec.whole_value() as usize),
            };
            let at = side.machine.maps.len();
            if let Some(real) = real.as_ref().filter(|_| before.is_some()) {
                let copy = real.maps[at].as_ref().unwrap();
                for key in map.keys() {
                    copy.map().set(&key, map.get(&key).unwrap()).unwrap();
                }
            }
            side.machine.maps.push(map);
            if before.is_none() {
                let (world, configuration) = (self.clone(), side.configuration);
                let entries = Entries {
                    world,
                    configuration,
                    name: MapName::Table(name.0, name.1),
                    ordered: spec.ordered,
                };
                tables.push((*name, Arc::new(entries)));
            }
        }
        // Tables that no program uses for now stay.
        for (i, name) in old.names.iter().enumerate().filter(|(_, n)| matches!(n, MapName::Table(..))) {
            if !side.names.contains(name) {
                side.names.push(*name);
                side.machine.maps.push(old.machine.maps[i].clone());
                if let (Some(real), Some(old)) = (&mut real, &mut old.real) {
                    real.maps.push(old.maps[i].take());
                }
            }
        }
        for (number, (_, device, program)) in programs.programs.iter().enumerate() {
            let parts = with_indices(&side.names, number, program);
            if let Some(real) = &mut real {
                let trial = real.load(&parts).map_err(|e| e.to_string())?;
                real.trials.insert(device.clone(), trial);
            }
            side.parts = side.parts.max(parts.len());
            let mut calls = Map::programs(parts.len() as u32);
            let mut parts = parts.into_iter();
            side.programs.insert(device.clone(), parts.next().unwrap());
            for (number, part) in (1u32..).zip(parts) {
                let index = side.machine.programs.len() as u32;
                calls.set(&number.to_le_bytes(), &index.to_le_bytes()).unwrap();
                side.machine.programs.push(part);
            }
            side.machine.maps.push(calls);
        }
        side.real = real;
        side.counters = shared.counters.clone();
        side.devices = shared.devices.clone();
        drop(side);
        for (name, table) in tables {
            fill(name, table);
        }
        Ok(counted)
    }
    fn finish(&self, tickets: &[Ticket]) {
        let mut side = self.0.kernel.lock().unwrap();
        tickets.iter().for_each(|t| t.finish(&mut *side));
    }
    fn counts(&self) -> Vec<(Counter, u64)> {
        let side = self.0.kernel.lock().unwrap();
        let Some(map) = side.machine.maps.first() else { return Vec::new() };
        let bytes = map.get(&0u32.to_ne_bytes()).unwrap();
        let number = |n: &[u8]| u64::from_ne_bytes(n.try_into().unwrap());
        castanet_element::kernel::counts(&side.counters, bytes.chunks(8).map(number))
    }
}

/// The fate of a frame.
enum Way {
    Gone,
    Up(Vec<u8>),
}

impl World {
    /// Runs the program of a device on a frame. None if the device has none.
    fn process(&self, device: &str, frame: &[u8], now: i64) -> Option<Way> {
        let mut side = self.0.kernel.lock().unwrap();
        side.machine.now = self.time(now);
        let program = side.programs.get(device)?.clone();
        let original = frame;
        let mut frame = Frame::new(frame);
        let run = side.machine.run(&program, &mut frame);
        let run = run.inspect_err(|fault| side.fault = Some(fault.to_string())).ok()?;
        let Run { result, executed, redirect } = run;
        if let Some(real) = &side.real {
            let (got, bytes) = real.trials[device].run(original).unwrap();
            let wanted = [frame.metadata(), frame.data()].concat();
            let counted = real.maps[0].as_ref().unwrap().map().sums().unwrap();
            let expected = side.machine.maps[0].get(&0u32.to_ne_bytes()).unwrap();
            let expected: Vec<u64> =
                expected.chunks(8).map(|n| u64::from_ne_bytes(n.try_into().unwrap())).collect();
            // After a drop, the bytes do not matter.
            if got != result || got != 1 && bytes != wanted || counted != expected {
                side.fault = Some(format!(
                    "the kernel: {got} {bytes:02x?} {counted:?}, the interpreter: {result} {wanted:02x?} {expected:?}"
                ));
            }
        }
        match (result, redirect) {
            (4, Some((1, _))) => {
                side.ways.0 += 1;
                let meta = frame.metadata();
                let mut bytes = vec![0; LONGEST - meta.len()];
                bytes.extend(meta);
                bytes.extend(frame.data());
                Some(Way::Up(bytes))
            }
            (4, Some((2, key))) => {
                side.ways.1 += 1;
                side.executed += executed;
                let to = side.devices[key as usize].clone();
                self.0.sent.lock().unwrap().push((to, frame.data().to_vec()));
                Some(Way::Gone)
            }
            (1, _) => {
                side.ways.1 += 1;
                side.executed += executed;
                Some(Way::Gone)
            }
            other => {
                side.fault = Some(format!("result {other:?}"));
                None
            }
        }
    }
}

/// Receives the frames of a device of the world.
#[derive(Class)]
#[class(name = "FromDevice", ports = "0/1", processing = "h/h", packets = "/ether unmarked", workers = exclusive)]
#[class(build, lifecycle, kernel, task, ledger(enters), drops(Truncated, Stopped))]
pub struct FromWorld {
    args: FromArgs,
    /// Packets received.
    #[count(unit = "packets")]
    count: Count,
    world: Option<Arc<World>>,
    points: Option<Arc<Points>>,
}

/// The arguments of both devices.
#[derive(Args)]
pub struct FromArgs {
    /// The name of the device.
    name: Word,
    /// PACKET: the element does not run in the kernel.
    #[arg(keyword)]
    method: Option<Word>,
    /// Accepted as in configurations for real devices.
    #[arg(keyword, name = "PROMISC")]
    _promisc: Option<bool>,
}

impl FromArgs {
    fn check(&self) -> Lowered {
        match &self.method {
            Some(method) if method.0 == "PACKET" => Err("it has no METHOD XDP".into()),
            _ => Ok(()),
        }
    }
}

impl Build for FromWorld {
    fn build(args: FromArgs, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let world = cx.shared_of::<World>(u32::MAX);
        Ok(FromWorld { args, count: Count::default(), world, points: None })
    }
}

impl Lifecycle for FromWorld {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let now = cx.now();
        cx.set_timer(0, now);
        Ok(())
    }
}

impl Element for FromWorld {
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        let Some(world) = self.world.clone() else { return };
        if id == 1 {
            let some = {
                let mut ring = world.0.ring.lock().unwrap();
                let mine = ring.entry(self.args.name.0.clone()).or_default();
                let most = world.0.most.load(Ordering::Relaxed);
                let some = mine.drain(..most.min(mine.len())).collect();
                if !mine.is_empty() {
                    let now = cx.now();
                    cx.set_timer(1, now + world.0.delay.load(Ordering::Relaxed) * 1_000_000);
                }
                some
            };
            return self.come_up(some, cx);
        }
        let now = (cx.peek() - castanet_testkit::START) / 1_000_000;
        let frame = {
            let mut frames = world.0.frames.lock().unwrap();
            let mine = frames.entry(self.args.name.0.clone()).or_default();
            let due = mine.front().is_some_and(|f| f.0 <= now);
            let frame = if due { mine.pop_front() } else { None };
            if let Some((at, _)) = mine.front() {
                cx.set_timer(0, castanet_testkit::START + at * 1_000_000);
            }
            frame
        };
        let Some((at, frame)) = frame else { return };
        if world.0.bursts.load(Ordering::Relaxed) {
            return self.deliver_all(&world, (at, frame), cx);
        }
        match world.process(&self.args.name.0, &frame, cx.peek()) {
            None => {
                cx.entered(1);
                self.count.add(1);
                let p = self.packet(&frame, cx.peek());
                cx.emit(0, p);
            }
            Some(Way::Gone) => {}
            Some(Way::Up(bytes)) => match world.0.delay.load(Ordering::Relaxed) {
                0 => self.come_up(vec![bytes], cx),
                delay => {
                    let mut ring = world.0.ring.lock().unwrap();
                    let mine = ring.entry(self.args.name.0.clone()).or_default();
                    if mine.is_empty() {
                        let now = cx.now();
                        cx.set_timer(1, now + delay * 1_000_000);
                    }
                    mine.push(bytes);
                }
            },
        }
    }
}

impl FromWorld {
    /// Delivers a frame and all others of the same time.
    fn deliver_all(&mut self, world: &World, (at, first): (i64, Vec<u8>), cx: &mut Cx<'_>) {
        let mut next = Some(first);
        while let Some(frame) = next {
            cx.entered(1);
            self.count.add(1);
            let p = self.packet(&frame, cx.peek());
            cx.emit(0, p);
            let mut frames = world.0.frames.lock().unwrap();
            let mine = frames.entry(self.args.name.0.clone()).or_default();
            next = mine.pop_front_if(|f| f.0 == at).map(|f| f.1);
            if next.is_none()
                && let Some((at, _)) = mine.front()
            {
                cx.set_timer(0, castanet_testkit::START + at * 1_000_000);
            }
        }
    }
    /// Passes on frames that have come up.
    fn come_up(&self, frames: Vec<Vec<u8>>, cx: &mut Cx<'_>) {
        cx.entered(frames.len() as u64);
        let mut batch = Batch::new();
        batch.extend(frames.iter().map(|f| self.packet(f, cx.peek())));
        come_up(&self.points.clone().unwrap(), &mut batch, cx);
        assert!(batch.is_empty(), "a frame came up without a record");
    }
    fn packet(&self, bytes: &[u8], now: i64) -> Packet {
        let mut p = castanet_element::kit::packet(bytes);
        let kind = match bytes.first_chunk::<6>() {
            Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
            Some([first, ..]) if first & 1 != 0 => PacketType::Multicast,
            Some(to) if *to != address(&self.args.name.0) => PacketType::OtherHost,
            _ => PacketType::Host,
        };
        p.set_packet_type(kind);
        p.set_mac_header(0);
        p.set_timestamp(now);
        p
    }
}

impl InKernel for FromWorld {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.args.check()?;
        receive(code, &address(&self.args.name.0));
        Ok(())
    }
    fn receives(&self) -> Option<&str> {
        self.args.check().is_ok().then_some(self.args.name.0.as_str())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Points(points) = to {
            self.points = Some(points);
        }
    }
}

/// Sends to a device of the world.
#[derive(Class)]
#[class(name = "ToDevice", ports = "1/0-2", processing = "l/h", packets = "ether/same", workers = exclusive)]
#[class(build, lifecycle, kernel, task, ledger(makes), ends(Consumed), drops(Consumed, SendFailed))]
pub struct ToWorld {
    args: FromArgs,
    /// Packets sent.
    #[count(unit = "packets")]
    count: Count,
    /// Packets that could not be sent.
    #[count(unit = "packets")]
    drops: Count,
    world: Option<Arc<World>>,
    upstream: Signal,
    batch: Batch,
    taken: u64,
}

impl Build for ToWorld {
    fn build(args: FromArgs, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let world = cx.shared_of::<World>(u32::MAX);
        let (count, drops) = Default::default();
        let upstream = Signal::default();
        Ok(ToWorld { args, count, drops, world, upstream, batch: Batch::new(), taken: 0 })
    }
}

impl Lifecycle for ToWorld {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
}

impl Element for ToWorld {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        cx.pull(0, 1, &mut self.batch);
        let Some(p) = self.batch.pop() else {
            return if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep };
        };
        self.taken += 1;
        if p.len() < 14 {
            self.drops.add(1);
            cx.emit_or(1, p, Reason::SendFailed);
            return Turn::Again;
        }
        self.count.add(1);
        if let Some(world) = &self.world {
            world.0.sent.lock().unwrap().push((self.args.name.0.clone(), p.data().to_vec()));
        }
        if cx.has_output(0) {
            // As in the class for real devices, the packets on output 0 are copies.
            cx.made(1);
            cx.left(1);
        }
        cx.emit_or(0, p, Reason::Consumed);
        Turn::Again
    }
}

impl InKernel for ToWorld {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.args.check()?;
        send(code, &self.args.name.0)
    }
    fn finished(&self) -> u64 {
        self.taken
    }
}

/// Prints everything that can be seen of packets, and drops them. It does not run in the kernel.
#[derive(Class)]
#[class(name = "Observe", ports = "1/0", processing = "h/h", packets = "any/", workers = exclusive)]
#[class(effects(prints), ends(Discarded), drops(Discarded))]
pub struct Observe {
    args: ObserveArgs,
}

/// The arguments of Observe.
#[derive(Args)]
pub struct ObserveArgs {
    /// The place, which begins each line.
    place: Word,
}

impl Element for Observe {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let shown = format!(
                "{} {:02x?} annotations {:02x?} type {:?} mac {:?} network {:?} transport {:?}",
                self.args.place.0,
                p.data(),
                p.annotations(),
                p.packet_type(),
                p.mac_offset(),
                p.network_offset(),
                p.transport_offset(),
            );
            cx.message(&shown);
            cx.drop(p, Reason::Discarded);
        }
    }
}

/// The classes of routers in the world.
pub fn classes() -> Arc<dyn Classes> {
    let mut registry = Registry::new();
    registry.add(element::<FromWorld>());
    registry.add(element::<ToWorld>());
    registry.add(element::<Observe>());
    registry.add(element::<crate::shared::Histogram>());
    Arc::new(registry)
}
