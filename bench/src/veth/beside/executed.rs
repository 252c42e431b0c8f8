// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that programs execute for one packet, by interpreting them. The counts do not depend on the machine.

use super::forwarder::{self, Router, VALUE, header};
use crate::veth::generator::{Addresses, frames};
use crate::veth::hosts::{NEXT_HOP, RECEIVER, SENDER};
use crate::veth::part;
use castanet_classes::Registry;
use castanet_kernel::interpreter::{Frame, Machine, Map, REDIRECT};
use castanet_kernel::{Instruction, MapName, order};
use castanet_runtime::in_kernel::compile;
use castanet_runtime::kernel::Programs;
use castanet_runtime::swap::Loaded;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The length of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// The number of its instructions.
    pub instructions: usize,
    /// The number of instructions that it executes for a packet of the measurement.
    pub executed: u64,
}

/// The first frame of the generator, for a router whose devices have the address 0.
fn frame(length: usize) -> Result<Vec<u8>, String> {
    let addresses =
        Addresses { ether: [[2, 0, 0, 0, 1, 2], [0; 6]], ip: [part::ip(SENDER)?, part::ip(RECEIVER)?] };
    frames(addresses, length).into_iter().next().ok_or_else(|| "no frames".into())
}

/// Executes a program. It must redirect the frame by the map of devices with this index.
fn run(program: &[Instruction], maps: Vec<Map>, devices: usize, length: usize) -> Result<Length, String> {
    let mut machine = Machine { maps, ..Machine::default() };
    let run = machine.run(program, &mut Frame::new(&frame(length)?)).map_err(|e| e.to_string())?;
    match run.redirect {
        Some((map, _)) if run.result == REDIRECT && map == devices => {
            Ok(Length { instructions: program.len(), executed: run.executed })
        }
        _ => Err(format!("the program does not forward, but returns {}", run.result)),
    }
}

fn devices(count: usize) -> Map {
    let mut map = Map::devices(u32::try_from(count).unwrap_or(u32::MAX));
    for number in (0u32..).take(count) {
        // There is room for this number of entries.
        let _ = map.set(&number.to_ne_bytes(), &1u32.to_ne_bytes());
    }
    map
}

/// The entry of the next hop in a table from IP addresses to Ethernet headers.
fn next_hop(table: &mut Map, ordered: bool) -> Result<(), String> {
    let key = part::ip(RECEIVER)?.to_be_bytes();
    let mut value = header(part::ether(NEXT_HOP)?, [0; 6]).to_vec();
    if ordered {
        value = order::open(&value);
    }
    table.set(&key, &value).map_err(|e| format!("{e:?}"))
}

/// The hand-written forwarder.
///
/// # Errors
/// It does not forward.
pub fn forwarder(length: usize) -> Result<Length, String> {
    let mut table = Map::hash(16, 4, VALUE);
    next_hop(&mut table, false)?;
    run(&Router::of_pair(1, [0; 6])?.program(), vec![table, devices(2)], 1, length)
}

/// The program that drops all frames.
pub fn drop() -> Length {
    let all = forwarder::drop_all();
    Length { instructions: all.len(), executed: all.len() as u64 }
}

/// Adds the Ethernet address 0 to each device of an AddressInfo.
fn with_ether(configuration: &str) -> String {
    let parts = configuration.split_once("AddressInfo(").and_then(|(before, rest)| {
        let (addresses, after) = rest.split_once(')')?;
        Some((before, addresses, after))
    });
    let Some((before, addresses, after)) = parts else { return configuration.into() };
    let addresses: Vec<String> = addresses.split(',').map(|a| format!("{a} 0:0:0:0:0:0")).collect();
    format!("{before}AddressInfo({}){after}", addresses.join(","))
}

/// Compiles the program of a configuration for the device `in`, without the device. The elements find its address to be 0.
fn programs(configuration: &str) -> Result<Programs, String> {
    let fixed = with_ether(configuration);
    let loaded = Loaded::from_text("router", fixed.as_bytes(), &Vec::new(), Arc::new(Registry::new()));
    let (loaded, _) = loaded.map_err(|e| e.to_string())?;
    let (_, programs) = compile(loaded.graph, &*loaded.classes).ok_or("the configuration has errors")?;
    Ok(programs)
}

/// The program that Castanet makes of a configuration for the device `in`.
///
/// # Errors
/// The configuration has errors, or the program does not forward.
pub fn compiled(configuration: &str, length: usize) -> Result<Length, String> {
    let programs = programs(configuration)?;
    let program = programs.programs.iter().find(|p| p.1 == "in").ok_or("no program for the device in")?;
    let program = &program.2;
    let [part] = program.parts.as_slice() else { return Err("the program has several parts".into()) };
    let shared = &programs.router.shared;
    let mut indices: BTreeMap<MapName, usize> = BTreeMap::new();
    let mut maps = Vec::new();
    for (_, name) in &part.maps {
        if indices.contains_key(name) {
            continue;
        }
        indices.insert(*name, maps.len());
        maps.push(match name {
            MapName::Counters => Map::per_cpu_array(1, 8 * shared.counters.len().max(1)),
            MapName::Sockets => Map::sockets(1),
            MapName::Devices => devices(shared.devices.len()),
            MapName::Slots => Map::array(1, order::TABLE as usize),
            MapName::Parts | MapName::Passed => return Err("the program calls another part".into()),
            MapName::Table(element, number) => {
                let spec = shared.tables.iter().find(|t| t.0 == (*element, *number));
                let spec = spec.map(|t| t.1).ok_or("a table without a shape")?;
                let mut map = Map::hash(16, spec.key as usize, spec.whole_value() as usize);
                // A table of next hops, as an ARPQuerier fills it.
                if (spec.key, spec.value as usize) == (4, VALUE) {
                    next_hop(&mut map, spec.ordered)?;
                }
                map
            }
        });
    }
    let index = |name| indices.get(&name).and_then(|i| i32::try_from(*i).ok()).unwrap_or(i32::MAX);
    let instructions = part.with_maps(index);
    let devices = indices.get(&MapName::Devices).copied().ok_or("the program sends to no device")?;
    run(&instructions, maps, devices, length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn devices_get_addresses() {
        let text = "a :: AddressInfo(in 10.0.0.1/24,\n  out 10.0.1.1/24);\nIdle;";
        assert_eq!(
            with_ether(text),
            "a :: AddressInfo(in 10.0.0.1/24 0:0:0:0:0:0,\n  out 10.0.1.1/24 0:0:0:0:0:0);\nIdle;"
        );
        assert_eq!(with_ether("Idle;"), "Idle;");
    }

    #[test]
    fn programs_are_as_long_as_they_are() {
        let own = forwarder(60).unwrap();
        assert!(own.executed <= 90 && own.instructions < 120, "{own:?}");
        assert_eq!(drop(), Length { instructions: 2, executed: 2 });
        let text = "FromDevice(in, METHOD XDP) -> Queue -> ToDevice(out, METHOD XDP);";
        let short = compiled(text, 60).unwrap();
        assert!(short.executed < own.executed, "{short:?} {own:?}");
        for (text, says) in [
            ("FromDevice(in) -> Discard;", "no program"),
            ("FromDevice(in, METHOD XDP) -> Discard;", "sends to no device"),
            ("FromDevice(in, METHOD XDP) -> NoSuch;", "NoSuch"),
        ] {
            let error = compiled(text, 60).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
