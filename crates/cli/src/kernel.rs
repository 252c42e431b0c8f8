// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers of `castanet run`: how devices receive and send, and whether a part of the router runs in the kernel.

mod entries;
mod unsent;

use castanet_element::kernel::order::Ticket;
use castanet_element::kernel::{Counter, Instruction, MapName, PASSED, Table, TableKind};
use castanet_graph::Graph;
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{
    DEFAULT_FOLDER, MapKind, MapRef, MapShape, ProgramMap, SendFailures, check_program, pin_in, run_plain,
    run_program, take_over, wait_for_programs,
};
use castanet_lang::Flat;
use castanet_lang::args;
use castanet_runtime::kernel::{Fill, KernelDriver, Programs};
use castanet_spec::ClassSpecs;
use clap::{Args, ValueEnum};
use entries::{Entries, Slots, Words};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unsent::Unsent;

/// How a router receives and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// As the configuration says: by packet sockets, if it says nothing.
    #[default]
    Packet,
    /// By AF_XDP sockets, as if all devices had METHOD XDP.
    AfXdp,
    /// By AF_XDP sockets, and all elements that can run in the kernel run there.
    Xdp,
}

impl Driver {
    /// Returns the graph of a configuration as the driver runs it.
    pub fn apply(self, graph: Graph, classes: &dyn ClassSpecs) -> Graph {
        if self == Driver::Packet {
            return graph;
        }
        let mut flat = graph.flat.clone();
        with_method_xdp(&mut flat);
        // The checks have passed before, and the arguments change nothing about them.
        Graph::new(flat, classes).0
    }
}

/// Adds METHOD XDP to all devices of a configuration that have no METHOD.
fn with_method_xdp(flat: &mut Flat) {
    for element in &mut flat.elements {
        let is_device = matches!(element.class.as_str(), "FromDevice" | "PollDevice" | "ToDevice");
        let words = args::split(&element.config);
        let says = |word: &str| {
            let word = word.trim_start();
            word.starts_with("METHOD ") || word.starts_with("CAPTURE ")
        };
        let has_method = words.iter().any(|r| element.config.get(r.clone()).is_some_and(says));
        if is_device && !has_method {
            element.config.push_str(", METHOD XDP");
        }
    }
}

/// The option that keeps programs in the kernel alive.
#[derive(Args, Clone, Debug, Default)]
pub struct Pin {
    /// With the driver xdp: if the router dies, its programs in the kernel go on, and drop and count the packets that need the router.
    /// The next router with the same folder takes over. DIR is a folder of the BPF file system [default: /sys/fs/bpf/castanet].
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_FOLDER)]
    pub pin: Option<PathBuf>,
}

impl Pin {
    /// Makes the programs of this process outlive it, if that is wanted. Call it before privileges are dropped.
    ///
    /// # Errors
    /// When the driver has no programs, or the folder cannot be used.
    pub fn start(&self, driver: Driver) -> Result<Option<&Path>, String> {
        let Some(folder) = &self.pin else { return Ok(None) };
        if driver != Driver::Xdp {
            return Err("--pin keeps the programs of --driver xdp alive; say that, too".into());
        }
        pin_in(folder).map_err(|e| format!("--pin: {e}"))?;
        Ok(Some(folder))
    }
}

/// The programs of a router in the kernel.
pub struct Kernel {
    state: Mutex<State>,
    /// Why frames that devices do not send are not counted.
    uncounted: Option<String>,
}

impl Kernel {
    /// The programs of a router that has none yet. Call it before privileges are dropped.
    pub fn new() -> Kernel {
        let (failures, uncounted) = match SendFailures::new() {
            Ok(failures) => (Some(Arc::new(failures)), None),
            Err(why) => (None, Some(why)),
        };
        Kernel { state: Mutex::new(State { failures, ..State::default() }), uncounted }
    }
    /// Why frames that devices do not send after the programs have passed them on count as sent; `None` if they count as drops.
    pub fn uncounted(&self) -> Option<&str> {
        self.uncounted.as_deref()
    }
    /// Ends the programs of a router that has died, where the first ones of this router have not replaced them (`--pin`). Returns the number of
    /// packets that those have dropped because they could not go up; `None` if there were none.
    pub fn take_over(&self) -> Option<u64> {
        let devices = self.state.lock().loaded.as_ref().map_or(Vec::new(), Loaded::devices_with_programs);
        take_over(&devices)
    }
}

#[derive(Default)]
struct State {
    /// The loaded programs.
    loaded: Option<Loaded>,
    slots: Option<Arc<Slots>>,
    tables: BTreeMap<(u32, u32), Arc<ProgramMap>>,
    failures: Option<Arc<SendFailures>>,
}

/// Tables with the elements that fill them, and their numbers in these elements.
type Tables = Vec<((u32, u32), Arc<dyn Table>)>;

/// Does something with a device, a program and the maps of the program.
type Load = fn(&str, &[Vec<Instruction>], &[MapRef<'_>]) -> Result<(), DeviceError>;

struct Loaded {
    counters: Vec<Vec<Counter>>,
    counts: ProgramMap,
    devices: ProgramMap,
    slots: Arc<Slots>,
    unsent: Unsent,
    /// The data that parts of programs pass to others, if a program has several.
    passed: Option<ProgramMap>,
    /// The parts of the programs, with the tables that they use.
    programs: Vec<(String, Vec<Vec<Instruction>>, Vec<MapName>)>,
}

impl Loaded {
    /// Calls `f` with each device, its program and the maps of the program.
    fn each(&self, tables: &BTreeMap<(u32, u32), Arc<ProgramMap>>, f: Load) -> Result<(), DeviceError> {
        for (device, parts, names) in &self.programs {
            let map = |name: &MapName| match name {
                MapName::Sockets => Some(MapRef::Sockets),
                MapName::Parts => Some(MapRef::Parts),
                MapName::Counters => Some(MapRef::Made(&self.counts)),
                MapName::Devices => Some(MapRef::Made(&self.devices)),
                MapName::Slots => Some(MapRef::Made(&self.slots.map)),
                MapName::Passed => self.passed.as_ref().map(MapRef::Made),
                MapName::Table(element, number) => tables.get(&(*element, *number)).map(|t| MapRef::Made(t)),
            };
            // A map that is missing makes the program fail to load.
            let maps: Vec<MapRef<'_>> = names.iter().map_while(map).collect();
            f(device, parts, &maps)?;
        }
        Ok(())
    }
    /// Makes all devices run their programs.
    fn run(&self, tables: &BTreeMap<(u32, u32), Arc<ProgramMap>>) -> Result<(), DeviceError> {
        self.each(tables, run_program)?;
        // The first counters are those of packets that could not go up, one for each program.
        let first = self.programs.first().map_or("", |p| p.0.as_str());
        self.counts.pin(first, u32::try_from(self.programs.len()).unwrap_or(u32::MAX))
    }
    fn devices_with_programs(&self) -> Vec<String> {
        self.programs.iter().map(|p| p.0.clone()).collect()
    }
    /// The numbers that the programs have counted.
    fn counts(&self) -> Vec<(Counter, u64)> {
        let sums = self.counts.map().sums().unwrap_or_default();
        let counted = castanet_element::kernel::counts(&self.counters, sums);
        self.unsent.correct(counted)
    }
}

/// The parts of a program, in which the constant of an instruction that loads a map is the index of the map in the second result.
fn with_indices(program: &castanet_element::kernel::Program) -> (Vec<Vec<Instruction>>, Vec<MapName>) {
    let mut names: Vec<MapName> = Vec::new();
    let mut number = |name| {
        let number = names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        i32::try_from(number).unwrap_or(i32::MAX)
    };
    let parts = program.parts.iter().map(|p| p.with_maps(&mut number)).collect();
    (parts, names)
}

/// The message for an error of programs. It names the element at which the kernel refused one.
fn explained(programs: &Programs, e: &DeviceError) -> String {
    let DeviceError::Unverified { name, refusal } = e else { return e.to_string() };
    let at = refusal.instruction().and_then(|at| programs.element_of(name, refusal.part, at));
    refusal.text(name, at.as_deref())
}

impl State {
    /// Makes the maps of programs. Returns them, and the new tables.
    fn prepare(&mut self, programs: &Programs) -> Result<(Loaded, Tables), DeviceError> {
        let first = programs.programs.first().map_or("", |p| p.1.as_str());
        let shared = &programs.router.shared;
        let map = |kind, key, value, entries| ProgramMap::new(first, MapShape { kind, key, value, entries });
        let counts = map(MapKind::Counters, 4, 8 * shared.counters.len().max(1) as u32, 1)?;
        let devices = ProgramMap::of_devices(first, &shared.devices)?;
        let unsent = match self.failures.clone() {
            Some(failures) => Unsent::new(failures, &shared.senders, &devices, &shared.devices)?,
            None => Unsent::default(),
        };
        let slots = match &self.slots {
            Some(slots) => slots.clone(),
            None => self.slots.insert(Arc::new(Slots::new(first)?)).clone(),
        };
        let passed = match programs.programs.iter().any(|p| p.2.parts.len() > 1) {
            true => Some(map(MapKind::Counters, 4, PASSED, 1)?),
            false => None,
        };
        let mut new: Tables = Vec::new();
        for (name, spec) in &shared.tables {
            if !self.tables.contains_key(name) {
                let table = Arc::new(map(spec.kind.into(), spec.key, spec.whole_value(), spec.entries)?);
                self.tables.insert(*name, table.clone());
                let slots = spec.ordered.then(|| slots.clone());
                let has_words = matches!(spec.kind, TableKind::Shared | TableKind::Array);
                let words = has_words.then(|| table.words(first)).transpose()?;
                new.push((*name, Arc::new(Entries(table, slots, words))));
            }
        }
        let programs = programs.programs.iter().map(|(_, device, program)| {
            let (parts, names) = with_indices(program);
            (device.clone(), parts, names)
        });
        Ok((
            Loaded {
                counters: shared.counters.clone(),
                counts,
                devices,
                slots,
                unsent,
                passed,
                programs: programs.collect(),
            },
            new,
        ))
    }

    /// Makes all devices that have programs run the plain one, except those of `except`.
    fn end(&mut self, except: &[String]) -> Vec<(Counter, u64)> {
        let Some(before) = self.loaded.take() else { return Vec::new() };
        for (device, ..) in before.programs.iter().filter(|p| !except.contains(&p.0)) {
            // A device that is gone has no program.
            let _ = run_plain(device);
        }
        if except.is_empty() {
            wait_for_programs();
        }
        before.counts()
    }

    fn install(
        &mut self,
        programs: &Programs,
        anew: bool,
        fill: &mut Fill<'_>,
    ) -> Result<Vec<(Counter, u64)>, DeviceError> {
        let former = if anew { std::mem::take(&mut self.tables) } else { self.tables.clone() };
        if programs.programs.is_empty() {
            return Ok(self.end(&[]));
        }
        let done = self.prepare(programs).and_then(|(next, tables)| {
            tables.into_iter().for_each(|(name, table)| fill(name, table));
            next.run(&self.tables).map(|()| next)
        });
        match done {
            Ok(next) => {
                let devices = next.devices_with_programs();
                let counted = self.end(&devices);
                self.loaded = Some(next);
                Ok(counted)
            }
            Err(e) => {
                self.tables = former;
                // Some devices may already have their new programs.
                if let Some(before) = &self.loaded {
                    before.run(&self.tables)?;
                }
                Err(e)
            }
        }
    }
}

impl KernelDriver for Kernel {
    fn check(&self, programs: &Programs) -> Result<(), String> {
        let mut trial = State::default();
        if programs.programs.is_empty() {
            return Ok(());
        }
        let checked = trial.prepare(programs).and_then(|(next, _)| next.each(&trial.tables, check_program));
        checked.map_err(|e| explained(programs, &e))
    }
    fn install(
        &self,
        programs: &Programs,
        anew: bool,
        fill: &mut Fill<'_>,
    ) -> Result<Vec<(Counter, u64)>, String> {
        self.state.lock().install(programs, anew, fill).map_err(|e| explained(programs, &e))
    }
    fn remove(&self) -> Vec<(Counter, u64)> {
        self.state.lock().end(&[])
    }
    fn finish(&self, tickets: &[Ticket]) {
        if let Some(slots) = &self.state.lock().slots {
            tickets.iter().for_each(|t| t.finish(&mut Words(&slots.words)));
        }
    }
    fn counts(&self) -> Vec<(Counter, u64)> {
        self.state.lock().loaded.as_ref().map_or(Vec::new(), Loaded::counts)
    }
}
