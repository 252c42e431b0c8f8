// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers of `castanet run`: how devices receive and send, and whether a part of the router runs in the kernel.

use castanet_element::kernel::{Counter, Instruction, MapName, Table};
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{MapKind, MapShape, ProgramMap, run_program};
use castanet_lang::Flat;
use castanet_lang::args;
use castanet_runtime::kernel::{KernelDriver, Programs};
use clap::ValueEnum;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// Adds METHOD XDP to all devices of a configuration that have no METHOD.
pub fn with_method_xdp(flat: &mut Flat) {
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

/// The programs of a router in the kernel.
#[derive(Default)]
pub struct Kernel(Mutex<State>);

#[derive(Default)]
struct State {
    /// What is loaded.
    loaded: Option<Loaded>,
    /// What earlier programs have counted.
    former: BTreeMap<Counter, u64>,
    tables: BTreeMap<(u32, u32), Arc<ProgramMap>>,
}

struct Loaded {
    counters: Vec<Counter>,
    counts: ProgramMap,
    devices: ProgramMap,
    /// The programs, with the tables that they use.
    programs: Vec<(String, Vec<Instruction>, Vec<MapName>)>,
}

struct Entries(Arc<ProgramMap>);

impl Table for Entries {
    fn set(&self, key: &[u8], value: &[u8]) -> bool {
        self.0.map().set(key, value).is_ok()
    }
    fn remove(&self, key: &[u8]) {
        // An entry that is already gone is as good.
        let _ = self.0.map().remove(key);
    }
}

impl Loaded {
    /// Loads all programs.
    fn run(&self, tables: &BTreeMap<(u32, u32), Arc<ProgramMap>>) -> Result<(), DeviceError> {
        for (device, instructions, names) in &self.programs {
            let maps: Vec<Option<&ProgramMap>> = names
                .iter()
                .map(|name| match name {
                    MapName::Sockets => None,
                    MapName::Counters => Some(&self.counts),
                    MapName::Devices => Some(&self.devices),
                    MapName::Table(element, number) => tables.get(&(*element, *number)).map(|t| &**t),
                })
                .collect();
            run_program(device, instructions, &maps)?;
        }
        Ok(())
    }
    /// What the programs have counted.
    fn counts(&self) -> impl Iterator<Item = (Counter, u64)> {
        let sums = self.counts.map().sums().unwrap_or_default();
        self.counters.iter().copied().zip(sums)
    }
}

/// The instructions of a program, in which the constant of an instruction that loads a map is the index of the map in the
/// second result.
fn with_indices(program: &castanet_element::kernel::Program) -> (Vec<Instruction>, Vec<MapName>) {
    let mut instructions = program.instructions.clone();
    let mut names: Vec<MapName> = Vec::new();
    for &(at, name) in &program.maps {
        let number = names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        if let Some(i) = instructions.get_mut(at) {
            i.immediate = i32::try_from(number).unwrap_or(i32::MAX);
        }
    }
    (instructions, names)
}

impl State {
    fn install(&mut self, programs: &Programs) -> Result<Vec<((u32, u32), Arc<dyn Table>)>, DeviceError> {
        let Some((_, first, _)) = programs.programs.first() else {
            self.loaded = None;
            return Ok(Vec::new());
        };
        let shared = &programs.router.shared;
        let map = |kind, key, value, entries| ProgramMap::new(first, MapShape { kind, key, value, entries });
        let counts = map(MapKind::Counters, 4, 8 * shared.counters.len().max(1) as u32, 1)?;
        let devices = ProgramMap::of_devices(first, &shared.devices)?;
        let mut new: Vec<((u32, u32), Arc<dyn Table>)> = Vec::new();
        for (name, spec) in &shared.tables {
            if !self.tables.contains_key(name) {
                let table = Arc::new(map(MapKind::Hash, spec.key, spec.value, spec.entries)?);
                self.tables.insert(*name, table.clone());
                new.push((*name, Arc::new(Entries(table))));
            }
        }
        let programs = programs.programs.iter().map(|(_, device, program)| {
            let (instructions, names) = with_indices(program);
            (device.clone(), instructions, names)
        });
        let next =
            Loaded { counters: shared.counters.clone(), counts, devices, programs: programs.collect() };
        if let Err(e) = next.run(&self.tables) {
            // Some devices may already have their new programs.
            if let Some(before) = &self.loaded {
                before.run(&self.tables)?;
            }
            for (name, _) in new {
                self.tables.remove(&name);
            }
            return Err(e);
        }
        if let Some(before) = self.loaded.replace(next) {
            for (counter, n) in before.counts() {
                let sum = self.former.entry(counter).or_default();
                *sum = sum.wrapping_add(n);
            }
        }
        Ok(new)
    }
}

impl KernelDriver for Kernel {
    fn install(&self, programs: &Programs) -> Result<Vec<((u32, u32), Arc<dyn Table>)>, String> {
        self.0.lock().install(programs).map_err(|e| e.to_string())
    }
    fn counts(&self) -> Vec<(Counter, u64)> {
        let state = self.0.lock();
        let mut all = state.former.clone();
        for (counter, n) in state.loaded.iter().flat_map(Loaded::counts) {
            let sum = all.entry(counter).or_default();
            *sum = sum.wrapping_add(n);
        }
        all.into_iter().collect()
    }
}
