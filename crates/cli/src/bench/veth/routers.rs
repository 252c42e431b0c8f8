// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routers of `castanet bench veth`: their names, and what they are compared with.

use super::Veth;
use super::presets::Chosen;
use super::tasks::{FLOWS, Kind, configuration};
use castanet_bench::veth::{Contender, DROP, FORWARDER, KernelTask, Known, SENDER, SOCKETS, Way};
use clap::ValueEnum;
use std::fmt::Write;

/// How a router receives and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// Packet sockets.
    Packet,
    /// AF_XDP sockets.
    AfXdp,
    /// The kernel, as far as possible.
    Xdp,
}

/// The task of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// It is the IP router.
    Route,
    /// It is the IP router behind a firewall.
    Firewall,
    /// It is the IP router, with RED before each queue.
    Red,
    /// It is the IP router, with fair queueing in place of each queue.
    Sfq,
    /// It is an Ethernet switch.
    Switch,
    /// It forwards all packets from one device to the other.
    Forward,
    /// It discards all packets but one of [`FLOWS`].
    Receive,
    /// It sends packets of its own.
    Send,
}

impl Task {
    /// The name in options and results.
    fn name(self) -> &'static str {
        match self {
            Task::Route => "route",
            Task::Firewall => "firewall",
            Task::Red => "red",
            Task::Sfq => "sfq",
            Task::Switch => "switch",
            Task::Forward => "forward",
            Task::Receive => "receive",
            Task::Send => "send",
        }
    }
}

impl Driver {
    /// The name of the router in the results.
    fn router(self) -> &'static str {
        match self {
            Driver::Packet => "castanet",
            Driver::AfXdp => "castanet-af-xdp",
            Driver::Xdp => "castanet-xdp",
        }
    }
    /// The options of FromDevice and ToDevice.
    pub(super) fn options(self, shield: bool) -> [&'static str; 2] {
        match self {
            // With METHOD XDP the host sees no frames, whether --shield is given or not.
            Driver::AfXdp | Driver::Xdp => [", SNIFFER false, METHOD XDP", ", METHOD XDP"],
            Driver::Packet if shield => [", SNIFFER false", ""],
            Driver::Packet => ["", ""],
        }
    }
}

/// The name of a router: the parts in which the routers of the measurement differ.
fn name(chosen: &Chosen, kind: Kind) -> String {
    let mut name = kind.driver.router().to_string();
    // Writing to a string cannot fail.
    if chosen.tasks.len() > 1 {
        let _ = write!(name, "-{}", kind.task.name());
    }
    if chosen.pairs.len() > 1 {
        let _ = write!(name, "-{}-interfaces", 2 * kind.pairs);
    }
    name
}

/// The name of the router that a router is compared with: that of the fewest pairs; among those, that of the first task.
fn base(chosen: &Chosen, kind: Kind) -> Option<String> {
    let (task, fewest) = (*chosen.tasks.first()?, *chosen.pairs.first()?);
    if kind.pairs != fewest {
        Some(name(chosen, Kind { pairs: fewest, ..kind }))
    } else if kind.task != task {
        Some(name(chosen, Kind { task, ..kind }))
    } else {
        None
    }
}

/// The routers to measure, and notes on those that are left out.
pub fn contenders(a: &Veth) -> Result<(Vec<Contender>, Vec<String>), String> {
    let chosen = a.chosen()?;
    let most = chosen.flows();
    let contender = |name: &str, way, pairs: u8| Contender {
        name: name.into(),
        way,
        share: 1,
        pairs: pairs.into(),
        switched: false,
        base: None,
    };
    if let Some(file) = &a.file {
        let source = crate::load::Source::file(file, Vec::new())?;
        let configuration = castanet_lang::bytes::decode_vec(source.bytes);
        let way = Way::Castanet { configuration, in_kernel: false, known: Known::Nothing };
        return Ok((vec![contender(Driver::Packet.router(), way, most)], Vec::new()));
    }
    let (mut all, mut notes) = (Vec::new(), vec![about_kernel(chosen.kernel).to_string()]);
    for &pairs in &chosen.pairs {
        for &task in &chosen.tasks {
            for &driver in &chosen.drivers {
                let kind = Kind { driver, task, pairs };
                if (task, driver) == (Task::Send, Driver::Xdp) {
                    notes.push("castanet-xdp is left out: sources do not run in the kernel".into());
                    continue;
                }
                let way = Way::Castanet {
                    configuration: configuration(a, &chosen, kind)?,
                    in_kernel: driver == Driver::Xdp,
                    known: match task {
                        Task::Send => Known::Sources,
                        Task::Forward | Task::Receive if chosen.count_received => Known::Receivers,
                        _ => Known::Nothing,
                    },
                };
                all.push(Contender {
                    share: if task == Task::Receive { FLOWS } else { 1 },
                    switched: task == Task::Switch,
                    base: base(&chosen, kind),
                    ..contender(&name(&chosen, kind), way, pairs)
                });
            }
        }
    }
    let has = |task, driver| chosen.tasks.contains(&task) && chosen.drivers.contains(&driver);
    if has(Task::Route, Driver::Xdp) {
        if chosen.both_ways() {
            notes.push(format!("{FORWARDER} is left out: it forwards in one direction"));
        } else {
            all.push(contender(FORWARDER, Way::Forwarder, most));
        }
        all.push(contender(DROP, Way::Drop, most));
    }
    if has(Task::Receive, Driver::Xdp) && chosen.kernel == KernelTask::Receive {
        all.push(contender(DROP, Way::Drop, most));
    }
    if has(Task::Forward, Driver::AfXdp) {
        if most > 1 || chosen.both_ways() {
            notes.push(format!("{SOCKETS} is left out: it forwards one flow in one direction"));
        } else {
            all.push(contender(SOCKETS, Way::Sockets, 1));
        }
    }
    if chosen.tasks.contains(&Task::Send) {
        all.push(contender(SENDER, Way::Sender, most));
        notes.push(format!("{SENDER}: a program of bench/ that sends 64 packets in one system call"));
    }
    Ok((all, notes))
}

/// A note on what the kernel does.
fn about_kernel(task: KernelTask) -> &'static str {
    match task {
        KernelTask::Route => "kernel: the IP router of Linux",
        KernelTask::Transfer => {
            "kernel: a filter of tc redirects all frames from device to device, before the network stack (cls_u32, act_mirred)"
        }
        KernelTask::Receive => {
            "kernel: the IPv4 stack drops the packets at its first test, because they are to another Ethernet address"
        }
        KernelTask::Send => {
            "kernel: it makes packets itself, as the generator of the other measurements does"
        }
    }
}
