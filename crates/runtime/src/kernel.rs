// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of the part of a router that runs in the kernel, and the driver that loads them.

use castanet_kernel::handover::Points;
use castanet_kernel::order::Ticket;
use castanet_kernel::{Counter, PART, Program, Reasons, Report, Table};
use castanet_spec::Reason;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The drop reasons that the compiler itself needs.
pub(crate) const REASONS: Reasons =
    Reasons { no_port: Reason::NoPort as u16, no_room: Reason::NoBuffer as u16 };

/// The programs of a router.
#[derive(Debug, Default)]
pub struct Programs {
    /// The program of each device that the router receives from: the element that receives, the name of the device, and the
    /// program.
    pub programs: Vec<(u32, String, Program)>,
    /// The data that the programs share.
    pub router: castanet_kernel::Router,
    /// The elements that receive from a device, of which the whole path is at user level: why.
    pub refused: BTreeMap<u32, String>,
    /// The names and classes of the elements that programs reach.
    pub names: BTreeMap<u32, (String, String)>,
}

impl Programs {
    /// Whether other programs have the same instructions, and these lead to the same points, devices and tables.
    pub(crate) fn is_same(&self, other: &Programs) -> bool {
        let mine = self.programs.iter().map(|p| &p.2.parts);
        self.router == other.router && mine.eq(other.programs.iter().map(|p| &p.2.parts))
    }
    /// Names the element to which an instruction belongs, in a part of the program for a device. None if several elements share the
    /// instruction.
    pub fn element_of(&self, device: &str, part: usize, instruction: usize) -> Option<String> {
        let (.., program) = self.programs.iter().find(|p| p.1 == device)?;
        let (name, class) = self.names.get(&program.element_of(part, instruction)?)?;
        Some(format!("element '{name}' ({class})"))
    }
    /// How each element runs that a program reaches, over all programs.
    pub fn elements(&self) -> BTreeMap<u32, Report> {
        let mut all: BTreeMap<u32, Report> = BTreeMap::new();
        for (element, report) in self.programs.iter().flat_map(|p| &p.2.elements) {
            let sum = all.entry(*element).or_default();
            sum.states += report.states;
            sum.instructions += report.instructions;
            if sum.up.is_none() {
                sum.up.clone_from(&report.up);
            }
        }
        all
    }
}

/// Fills a new table. The arguments are the element that fills it, the number of the table in the element, and the table.
pub type Fill<'a> = dyn FnMut((u32, u32), Arc<dyn Table>) + 'a;

/// Loads programs into the kernel.
pub trait KernelDriver: Send + Sync {
    /// The number of instructions above which programs are cut into parts. Tests cut small programs too.
    fn part_size(&self) -> usize {
        PART
    }
    /// Checks that the kernel accepts programs. They do not run.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn check(&self, programs: &Programs) -> Result<(), String>;
    /// Replaces the programs of all devices. If it fails, the former programs go on. `anew` says that the programs belong to
    /// another configuration, which has tables of its own. `fill` is called for each new table before the programs run. Returns
    /// what the former programs have counted.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn install(
        &self,
        programs: &Programs,
        anew: bool,
        fill: &mut Fill<'_>,
    ) -> Result<Vec<(Counter, u64)>, String>;
    /// Ends all programs: devices pass all frames to user level. Returns what the programs have counted.
    fn remove(&self) -> Vec<(Counter, u64)>;
    /// Notes that packets which came up with tickets have left the router.
    fn finish(&self, tickets: &[Ticket]);
    /// The numbers that the programs have counted since the last [`KernelDriver::install`].
    fn counts(&self) -> Vec<(Counter, u64)>;
}

/// The programs of a configuration, while it runs.
pub(crate) struct Kernel {
    pub driver: Arc<dyn KernelDriver>,
    pub programs: Programs,
    /// The points of the programs and of former ones.
    pub points: Points,
    /// The counts that were already added to those of elements.
    pub seen: BTreeMap<Counter, u64>,
    /// For each element, the packets that came up there.
    pub raised: BTreeMap<u32, u64>,
}

/// The part of counts that is not in `seen`.
pub(crate) fn unseen(seen: &BTreeMap<Counter, u64>, counts: Vec<(Counter, u64)>) -> Vec<(Counter, u64)> {
    let more =
        |(counter, n): (Counter, u64)| (counter, n.wrapping_sub(seen.get(&counter).copied().unwrap_or(0)));
    counts.into_iter().map(more).filter(|c| c.1 > 0).collect()
}

impl Kernel {
    /// Notes counts, and returns the part of them that was not noted before.
    pub(crate) fn unseen(&mut self, counts: Vec<(Counter, u64)>) -> Vec<(Counter, u64)> {
        let new = unseen(&self.seen, counts);
        for (counter, more) in &new {
            let seen = self.seen.entry(*counter).or_default();
            *seen = seen.wrapping_add(*more);
        }
        new
    }
}

/// The place of a configuration's [`Kernel`].
pub(crate) type KernelSlot = Mutex<Option<Kernel>>;

/// The packets with tickets that may still be in the router.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// The ways of packets from the queues that the programs leave out.
    pub paths: Vec<Path>,
    pub waiting: VecDeque<Waiting>,
}

/// The way of packets from a queue that the programs leave out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub queue: u32,
    /// The element that sends the packets.
    pub last: u32,
    /// Whether that element pulls by a scheduler.
    pub by_scheduler: bool,
}

/// Packets that have been passed on together.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub tickets: Vec<Ticket>,
    /// For each path, the number of packets that its last element has finished when these packets are gone.
    pub until: Vec<u64>,
}
