// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choices of the figures of `castanet bench veth`, which options override.

use super::Veth;
use super::routers::{Driver, Task};
use castanet_bench::veth::{Figure, KernelTask, Traffic};
use clap::ValueEnum;

/// The directions in which packets cross a pair of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ways {
    /// From the first to the second.
    One,
    /// Also from the second to the first.
    Both,
}

/// The task of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// It routes IPv4.
    Route,
    /// It redirects all frames from device to device.
    Transfer,
    /// It receives packets and drops them.
    Receive,
    /// It sends packets of its own.
    Send,
}

impl From<Kernel> for KernelTask {
    fn from(kernel: Kernel) -> KernelTask {
        match kernel {
            Kernel::Route => KernelTask::Route,
            Kernel::Transfer => KernelTask::Transfer,
            Kernel::Receive => KernelTask::Receive,
            Kernel::Send => KernelTask::Send,
        }
    }
}

/// The choices of a figure.
struct Preset {
    drivers: &'static [Driver],
    tasks: &'static [Task],
    lengths: &'static [u16],
    flows: &'static [u8],
    ways: &'static [Ways],
    kernel: KernelTask,
    points: u16,
    search: bool,
    count_received: bool,
}

const ALL: &[Driver] = &[Driver::Packet, Driver::AfXdp, Driver::Xdp];
/// The lengths of frames without their check sequence, from the shortest to the longest: payloads of 46 to 1500 bytes.
const LENGTHS: &[u16] = &[60, 124, 252, 508, 1020, 1514];
/// The choices without a figure.
const NONE: Preset = Preset {
    drivers: &[Driver::Packet],
    tasks: &[Task::Route],
    lengths: &[60],
    flows: &[1],
    ways: &[Ways::One],
    kernel: KernelTask::Route,
    points: 12,
    search: true,
    count_received: false,
};
/// The choices for a figure of rates in saturation.
const SATURATED: Preset = Preset { drivers: ALL, points: 0, search: false, ..NONE };

fn preset(figure: Option<Figure>) -> Preset {
    let one_to_eight = &[1, 2, 3, 4, 5, 6, 7, 8];
    let transfer = Preset { tasks: &[Task::Forward], kernel: KernelTask::Transfer, ..SATURATED };
    match figure {
        None => NONE,
        Some(Figure::Tocs17) => Preset { drivers: ALL, ..NONE },
        Some(Figure::Sosp15) => Preset { drivers: ALL, tasks: &[Task::Forward, Task::Route], ..NONE },
        Some(Figure::Sosp16) => Preset {
            drivers: ALL,
            tasks: &[Task::Forward, Task::Route],
            lengths: LENGTHS,
            points: 3,
            search: false,
            ..NONE
        },
        Some(Figure::Sosp17) => Preset {
            drivers: &[Driver::Packet, Driver::Xdp],
            tasks: &[Task::Route, Task::Red, Task::Sfq, Task::Switch],
            ..NONE
        },
        Some(Figure::Hpsr4) => {
            Preset { tasks: &[Task::Receive], flows: one_to_eight, kernel: KernelTask::Receive, ..SATURATED }
        }
        Some(Figure::Hpsr5) => {
            Preset { tasks: &[Task::Send], flows: one_to_eight, kernel: KernelTask::Send, ..SATURATED }
        }
        Some(Figure::Hpsr6a) => Preset { flows: &[1, 2, 3, 4], count_received: true, ..transfer },
        Some(Figure::Hpsr6b) => {
            Preset { flows: &[4], lengths: LENGTHS, ways: &[Ways::One, Ways::Both], ..transfer }
        }
        Some(Figure::Hpsr7) => Preset { flows: &[1, 2, 3], ..SATURATED },
    }
}

/// The choices of the options and of the figure. Lists have no duplicates; numbers are in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub drivers: Vec<Driver>,
    pub tasks: Vec<Task>,
    pub lengths: Vec<u16>,
    flows: Vec<u8>,
    ways: Vec<Ways>,
    /// The numbers of pairs of interfaces, each at least as large as the largest number of flows.
    pub pairs: Vec<u8>,
    pub kernel: KernelTask,
    pub points: u16,
    pub search: bool,
    pub count_received: bool,
}

/// The elements of the option, or else those of the figure, without duplicates.
fn once<T: PartialEq + Copy>(option: &[T], else_: &[T]) -> Vec<T> {
    let mut list = Vec::new();
    for one in if option.is_empty() { else_ } else { option } {
        if !list.contains(one) {
            list.push(*one);
        }
    }
    list
}

impl Veth {
    /// The choices of the options and of the figure.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn chosen(&self) -> Result<Chosen, String> {
        let preset = preset(self.figure);
        let (mut lengths, mut flows) = (once(&self.lengths, preset.lengths), once(&self.flows, preset.flows));
        lengths.sort_unstable();
        flows.sort_unstable();
        let most = flows.last().copied().unwrap_or(1);
        let mut pairs: Vec<u8> = self.pairs.iter().map(|n| (*n).max(most)).collect();
        pairs = once(&pairs, &[most]);
        pairs.sort_unstable();
        let points = self.points.unwrap_or(preset.points);
        let chosen = Chosen {
            drivers: once(&self.drivers, preset.drivers),
            tasks: once(&self.tasks, preset.tasks),
            lengths,
            flows,
            ways: once(&self.ways, preset.ways),
            pairs,
            kernel: self.kernel.map_or(preset.kernel, KernelTask::from),
            points,
            search: preset.search && points > 0,
            count_received: preset.count_received,
        };
        let sends = |task: &Task| *task == Task::Send;
        if chosen.tasks.iter().any(sends) != (chosen.kernel == KernelTask::Send)
            || chosen.tasks.iter().any(sends) && !chosen.tasks.iter().all(sends)
        {
            return Err(
                "packets of the routers' own, --task send and --kernel send, are measured alone".into()
            );
        }
        Ok(chosen)
    }
}

impl Chosen {
    /// The largest number of flows.
    pub fn flows(&self) -> u8 {
        self.flows.last().copied().unwrap_or(1)
    }

    /// Whether packets cross pairs in both directions in a part of the measurement.
    pub fn both_ways(&self) -> bool {
        self.ways.contains(&Ways::Both)
    }

    /// The kinds of traffic.
    pub fn traffic(&self) -> Vec<Traffic> {
        let mut all = Vec::new();
        for ways in &self.ways {
            for flows in &self.flows {
                for length in &self.lengths {
                    all.push(Traffic {
                        length: (*length).into(),
                        flows: (*flows).into(),
                        both_ways: *ways == Ways::Both,
                    });
                }
            }
        }
        all
    }
}
