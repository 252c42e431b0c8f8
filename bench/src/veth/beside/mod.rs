// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-written forwarders, which are measured beside Castanet's drivers: how fast can it be?

pub mod assembler;
pub mod executed;
pub mod forwarder;
mod sockets;

use super::hosts::{self, NEXT_HOP};
use castanet_io::device::xdp::{AttachedProgram, MapKind, MapShape, ObservedProgram, ProgramMap};
use castanet_io::device::{DeviceError, info, statistics};
use forwarder::{Router, header};
use std::io::{BufRead, Read};

pub use sockets::forward as forward_by_sockets;

fn text(e: DeviceError) -> String {
    e.to_string()
}

/// Says that this process is ready, and waits for the end of its input.
fn hold() -> Result<(), String> {
    println!("ready");
    let done = std::io::stdin().read_to_end(&mut Vec::new());
    done.map(drop).map_err(|e| format!("standard input: {e}"))
}

/// Drops all frames that devices receive, as early as a program can, until the input ends.
///
/// # Errors
/// The kernel does not permit it.
pub fn drop_frames(devices: &[&str]) -> Result<(), String> {
    let attach = |device: &&str| AttachedProgram::new(device, &forwarder::drop_all(), &[]).map_err(text);
    let _programs = devices.iter().map(attach).collect::<Result<Vec<_>, String>>()?;
    hold()
}

/// Forwards from the first device of each pair of interfaces to the second, by the hand-written program, until the input ends. Each
/// program knows only the two interfaces of its pair.
///
/// # Errors
/// The kernel does not permit it.
pub fn forward(pairs: usize) -> Result<(), String> {
    let ether = |device: &str| Ok::<_, String>(info(device).map_err(text)?.ether.unwrap_or_default());
    let mut programs = Vec::new();
    for pair in 1..=pairs {
        let [from, to] = hosts::devices(pair);
        let router = Router::of_pair(pair, ether(&from)?)?;
        let shape = MapShape { kind: MapKind::Hash, key: 4, value: forwarder::VALUE as u32, entries: 65_536 };
        let next_hops = ProgramMap::new(&from, shape).map_err(text)?;
        let devices = ProgramMap::of_devices(&from, &[from.clone(), to.clone()]).map_err(text)?;
        let next_hop = super::part::ether(NEXT_HOP)?;
        let [_, receiver] = hosts::host_addresses(pair);
        let key = super::part::ip(&receiver)?.to_be_bytes();
        let done = next_hops.map().set(&key, &header(next_hop, ether(&to)?));
        done.map_err(|e| format!("the table of next hops: {e}"))?;
        let program =
            AttachedProgram::new(&from, &router.program(), &[&next_hops, &devices]).map_err(text)?;
        programs.push((program, next_hops, devices));
    }
    hold()
}

/// The number of frames that programs have redirected to a device.
pub fn redirected(device: &str) -> u64 {
    let of_queue = |name: &str| name.starts_with("tx_queue_") && name.ends_with("_xdp_xmit");
    statistics(device).iter().filter(|(name, _)| of_queue(name)).map(|(_, n)| n).sum()
}

/// Counts the runs of the program of a device, until the input ends: after each line of input, prints their number and their
/// time in nanoseconds.
///
/// # Errors
/// The device has no program, or the kernel does not tell.
pub fn count_runs(device: &str) -> Result<(), String> {
    let program = ObservedProgram::of(device).map_err(text)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line.map_err(|e| format!("standard input: {e}"))?;
        let (runs, time) = program.runs().map_err(text)?;
        println!("{runs} {}", time.as_nanos());
    }
    Ok(())
}

/// The addresses and prefix lengths of the router on the devices of a pair.
fn addresses(pair: usize) -> Result<[(u32, u32); 2], String> {
    let of = |(_, address): &(String, String)| {
        let (ip, length) = address.split_once('/').ok_or("an address without a prefix length")?;
        let length = length.parse().map_err(|e| format!("{address}: {e}"))?;
        Ok::<_, String>((super::part::ip(ip)?, length))
    };
    match &hosts::interfaces(pair)[..] {
        [.., a, b] => Ok([of(a)?, of(b)?]),
        _ => Err("a pair has two interfaces".into()),
    }
}
