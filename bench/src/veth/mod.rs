// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Castanet routers with the kernel's router, between the same two hosts: how much of the offered load each
//! of them forwards.
//!
//! A sender, the routers and a receiver are network namespaces connected by veth (`world`). Trials alternate between
//! the routers, so that other load on the machine affects both. The generator ([`generator`]) has one CPU, and the
//! router another. Over veth the sender's CPU also executes the receive path of the router's host. For Castanet, this
//! path ends at the packet socket. For the kernel's router, it includes the whole router. This receive path can be
//! moved to the router's CPU ([`Settings::steer`]). Programs that the driver of a device runs (XDP) are also a part of this
//! path, so they and the generator share one CPU, as the kernel's router does.
//!
//! Each router is offered one or more kinds of [`Traffic`]. A router with one kind of traffic is a [`Subject`]: trials
//! alternate between the subjects, and results are those of a subject.

pub mod beside;
mod compare;
pub mod figures;
pub mod generator;
pub(crate) mod hosts;
mod measure;
pub mod part;
mod plot;
pub mod report;
pub(crate) mod stream;
mod traffic;
pub(crate) mod world;

pub use compare::Compared;
pub use figures::Figure;
pub use generator::Generator;
pub use hosts::{NEXT_HOP, RECEIVER, host_address, interfaces};
pub use measure::run_all;
pub use plot::svg;
pub use traffic::{Subject, Traffic};

use crate::fig8::Spread;
use beside::executed::{self, Length};
use std::path::PathBuf;

/// The name of the kernel's router, which is the first of all.
pub const KERNEL: &str = "kernel";
/// The name of the hand-written forwarder ([`Way::Forwarder`]).
pub const FORWARDER: &str = "xdp-forwarder";
/// The name of the program that drops all frames ([`Way::Drop`]).
pub const DROP: &str = "xdp-drop";
/// The name of the bare AF_XDP forwarder ([`Way::Sockets`]).
pub const SOCKETS: &str = "af-xdp-bare";
/// The name of the hand-written program that sends by a packet socket ([`Way::Sender`]).
pub const SENDER: &str = "packet-socket";
/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of this program.
    pub program: PathBuf,
    /// The figure to draw.
    pub figure: Option<Figure>,
    /// The subcommand, as words, with which the program performs a part of the measurement. The arguments of the part
    /// are appended. The subcommand must call [`part::run`].
    pub part: Vec<String>,
    /// The work of the kernel, with which all others are compared.
    pub kernel: KernelTask,
    /// The routers to compare with the kernel.
    pub routers: Vec<Contender>,
    /// The kinds of traffic. Each router gets each of them.
    pub traffic: Vec<Traffic>,
    /// The total duration in seconds.
    pub seconds: f64,
    /// The number of offered rates, besides the maximum.
    pub points: usize,
    /// Whether to search for the loss-free rate.
    pub search: bool,
    /// Whether to count the packets that a router receives, besides those that it forwards.
    pub count_received: bool,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The largest share of lost packets at which a rate still counts as loss-free.
    pub tolerance: f64,
    /// The CPUs of generator and routers; by default the first two.
    pub processors: Option<[usize; 2]>,
    /// Whether the routers' CPU executes the receive path. This requires root.
    pub steer: bool,
    /// The method of packet generation; by default live frames if the kernel permits them.
    pub generator: Option<Generator>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A router to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its name in the results.
    pub name: String,
    /// How it forwards.
    pub way: Way,
    /// It forwards one of this number of packets, and drops the others.
    pub share: u32,
    /// The number of its pairs of interfaces (see [`interfaces`]). Packets cross as many as [`Traffic::flows`] says; the others are
    /// idle.
    pub pairs: usize,
    /// Whether frames are addressed to the host behind the router, as in a switched network, and not to the router.
    pub switched: bool,
    /// The name of the router that it is compared with, besides the kernel's.
    pub base: Option<String>,
}

impl Contender {
    /// Whether the work is that of the CPU that also generates the packets.
    fn works_beside_generator(&self) -> bool {
        match &self.way {
            Way::Kernel(task) => *task != KernelTask::Send,
            Way::Forwarder | Way::Drop => true,
            // A router whose usual path cannot be compiled gets its packets at user level. The program of a switch cannot be
            // interpreted before the switch has learned the stations, but then only its first packets go to user level.
            way @ Way::Castanet { in_kernel: true, .. } => self.switched || way.length(60).is_some(),
            Way::Castanet { .. } | Way::Sockets | Way::Sender => false,
        }
    }
}

/// How a router forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the kernel's own means.
    Kernel(KernelTask),
    /// By `castanet run`.
    Castanet {
        /// The configuration.
        configuration: String,
        /// Whether the elements that can run in the kernel do (`--driver xdp`).
        in_kernel: bool,
        /// The elements that the measurement reads or controls.
        known: Known,
    },
    /// By the hand-written XDP program.
    Forwarder,
    /// Not at all: an XDP program drops all frames. What arrives at the program counts as forwarded.
    Drop,
    /// By AF_XDP sockets, without any elements.
    Sockets,
    /// It sends packets of its own, by a packet socket with many packets in one system call.
    Sender,
}

/// The work of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelTask {
    /// It forwards IPv4.
    Route,
    /// It redirects all frames from one device to the other, before its network stack (a filter of tc, action mirred).
    Transfer,
    /// It receives frames, and drops them at the first test of its IPv4 stack, which reads the frame's type and finds that the frame is
    /// to another host.
    Receive,
    /// It sends packets of its own: the live generator, or a packet socket.
    Send,
}

/// Elements of a configuration that the measurement reads or controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// None.
    Nothing,
    /// `from1`, `from2`, ...: the FromDevice of the first device of each pair; `back1`, `back2`, ...: that of the second, if packets go both
    /// ways.
    Receivers,
    /// `source1`, `source2`, ...: the sources for the second device of each pair. They are inactive at first.
    Sources,
}

impl Way {
    /// Whether the driver of the receiving device runs a program.
    fn is_program(&self) -> bool {
        matches!(self, Way::Castanet { in_kernel: true, .. } | Way::Forwarder | Way::Drop)
    }
    /// Whether packets are made by the router.
    fn sends(&self) -> bool {
        matches!(
            self,
            Way::Castanet { known: Known::Sources, .. } | Way::Kernel(KernelTask::Send) | Way::Sender
        )
    }
    /// Whether packets end at the router, and none leave it.
    fn receives(&self) -> bool {
        matches!(self, Way::Drop | Way::Kernel(KernelTask::Receive))
    }
    /// The length of the program; `None` if there is none, or it cannot be interpreted.
    fn length(&self, frame: usize) -> Option<Length> {
        match self {
            Way::Castanet { configuration, in_kernel: true, .. } => {
                executed::compiled(configuration, frame).ok()
            }
            Way::Forwarder => executed::forwarder(frame).ok(),
            Way::Drop => Some(executed::drop()),
            _ => None,
        }
    }
}

/// Measurements of a program that the driver of a device runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The router's name.
    pub name: String,
    /// Nanoseconds of one run, as the kernel counts them.
    pub time: Spread,
    /// The number of its instructions, and of those that it executes for one packet.
    pub length: Option<Length>,
    /// For Castanet: the share of the forwarded packets that did not leave the kernel.
    pub stayed: Option<f64>,
}

/// A router at one offered rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Packets per second sent to the router.
    pub offered: f64,
    /// Packets per second that the router forwarded.
    pub forwarded: Spread,
    /// Packets per second that the router received, if they were counted.
    pub received: Option<f64>,
    /// The share of packets lost.
    pub lost: f64,
    /// Nanoseconds of CPU time for each packet forwarded.
    pub cpu: Spread,
    /// The share of time in which other programs occupied the CPU of generator or router.
    pub disturbed: f64,
}

/// The results of all routers at one offered rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The requested packets per second; 0 for as many as possible.
    pub asked: f64,
    /// The results of each router, in the order of [`Results::subjects`].
    pub cells: Vec<Cell>,
}

/// The capacity of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capacity {
    /// The highest forwarding rate in packets per second.
    pub peak: f64,
    /// The highest loss-free rate, in packets per second, if it was searched for.
    pub loss_free: Option<f64>,
    /// The highest offered rate, in packets per second.
    pub overload: f64,
    /// The forwarding rate at the highest offered rate, in packets per second.
    pub survives: f64,
    /// Nanoseconds of CPU time per packet at the peak.
    pub cpu: f64,
}

/// All results.
#[derive(Clone, Debug)]
pub struct Results {
    /// The figure to draw.
    pub figure: Option<Figure>,
    /// The routers with their traffic. The first is the kernel.
    pub subjects: Vec<Subject>,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The duration of a trial in seconds.
    pub trial: f64,
    /// The largest share of lost packets at which a rate still counts as loss-free.
    pub tolerance: f64,
    /// The CPUs of generator and routers.
    pub processors: [usize; 2],
    /// Whether the routers' CPU executed the receive path.
    pub steered: bool,
    /// The method of packet generation.
    pub generator: Generator,
    /// The results for each rate, in increasing order of the rate. The maximum rate is the last.
    pub points: Vec<Point>,
    /// The results of each router, in the order of `subjects`.
    pub capacities: Vec<Capacity>,
    /// The programs that the driver of a device runs.
    pub programs: Vec<Program>,
    /// Comparisons of Castanet's routers with each other.
    pub compared: Vec<Compared>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Results {
    /// The names of the subjects.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().map(|s| s.name.as_str())
    }
    /// The place of the subject with this router and the traffic of another subject.
    fn beside(&self, router: &str, other: &Subject) -> Option<usize> {
        self.subjects.iter().position(|s| s.router == router && s.traffic == other.traffic)
    }
}

#[cfg(test)]
mod tests;
