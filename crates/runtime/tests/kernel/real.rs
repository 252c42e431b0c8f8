// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs and maps of a world in the kernel.

use castanet_element::kernel::{Instruction, MapName, PASSED, Part, Program, Shared, order};
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{MapKind, MapRef, MapShape, ProgramMap, Trial};
use std::collections::HashMap;

/// The most devices of a world, each with a map of its program's parts.
const DEVICES: usize = 8;

/// Programs and maps in the kernel. The maps of sockets and parts are not among them.
#[derive(Default)]
pub struct Real {
    pub maps: Vec<Option<ProgramMap>>,
    pub trials: HashMap<String, Trial>,
}

impl Real {
    /// Makes the maps in the order of [`names`]. They have no entries, except those for devices.
    pub fn new(shared: &Shared) -> Real {
        let mut real = Real::default();
        real.map(MapKind::Counters, 4, 8 * shared.counters.len().max(1) as u32, 1);
        real.maps.push(None);
        real.map(MapKind::Devices, 4, 4, shared.devices.len().max(1) as u32);
        for number in 0..shared.devices.len() as u32 {
            // The loopback device, which every namespace has.
            let map = real.maps[2].as_ref().unwrap();
            map.map().set(&number.to_ne_bytes(), &1u32.to_ne_bytes()).unwrap();
        }
        real.map(MapKind::Shared, 4, order::TABLE, 1);
        real.map(MapKind::Counters, 4, PASSED, 1);
        for (_, spec) in &shared.tables {
            real.map(spec.kind.into(), spec.key, spec.whole_value(), spec.entries);
        }
        real
    }
    fn map(&mut self, kind: MapKind, key: u32, value: u32, entries: u32) {
        let map = ProgramMap::new("a test", MapShape { kind, key, value, entries }).unwrap();
        self.maps.push(Some(map));
    }
    /// Loads the parts of a program.
    pub fn load(&self, parts: &[Vec<Instruction>]) -> Result<Trial, DeviceError> {
        let maps = self.maps.iter().map(|m| m.as_ref().map_or(MapRef::Sockets, MapRef::Made));
        let maps: Vec<MapRef<'_>> = maps.chain([MapRef::Parts; DEVICES]).collect();
        Trial::load(parts, &maps)
    }
}

/// The maps of programs by their indices. The map of the parts of each device's program comes after them.
pub fn names(shared: &Shared) -> Vec<MapName> {
    let tables = shared.tables.iter().map(|(name, _)| MapName::Table(name.0, name.1));
    [MapName::Counters, MapName::Sockets, MapName::Devices, MapName::Slots, MapName::Passed]
        .into_iter()
        .chain(tables)
        .collect()
}

/// The parts of the program of the device with a number, with the indices of maps.
pub fn with_indices(names: &[MapName], device: usize, program: &Program) -> Vec<Vec<Instruction>> {
    let index = |name| match names.iter().position(|n| *n == name) {
        Some(index) => index,
        None if name == MapName::Parts && device < DEVICES => names.len() + device,
        None => panic!("no map {name:?}"),
    };
    let with = |part: &Part| part.with_maps(|name| index(name) as i32);
    program.parts.iter().map(with).collect()
}
