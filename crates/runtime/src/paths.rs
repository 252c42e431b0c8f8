// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled paths: machine code for the elements that packets pass one after the other.
//!
//! When packets cross an edge for some time, the elements behind it are compiled, as far as their classes describe what they do
//! (the same descriptions that run in the kernel, [`castanet_kernel::Region`]). The code is made on another thread. Until it is there,
//! for packets that it cannot process, and while somebody observes elements, the elements run themselves.
//!
//! The code moves a whole batch and says for each packet by which end it has left the path. An end is an edge by which the packet
//! continues: to an element that is not compiled, or to an element of the path that must process this packet itself, for example
//! because it has IP options. Packets of the latter kind must not be overtaken by those behind them: each moves on alone, before the
//! rest of the batch, which waits in a [`Rest`].

mod account;

pub(crate) use account::{Account, Accounts};

use crate::node::NONE;
use castanet_kernel::Region;
use castanet_native::{Compiler, Job, When};
use castanet_packet::Batch;
use std::collections::HashMap;
use std::sync::Arc;

/// Compiles paths.
pub type PathCompiler = Compiler<Region, castanet_native::Path>;

/// An edge with a number from here on has no path yet: this number is decreased with each batch. When it is reached, a path is
/// compiled.
pub(crate) const TRY: u32 = 1 << 20;
/// The number of batches before a path is compiled.
pub(crate) const PATIENCE: u32 = 16;
/// A path is given up if of so many packets more than a quarter must be processed by the elements themselves.
const SAMPLE: u32 = 4096;
/// The number of times that a path is compiled again with other assumptions about its packets.
pub(crate) const TRIES: u32 = 6;
/// The doublings of the time between the change of an element and new code.
const MOST_CHANGES: u32 = 10;
/// The edge on the stack that stands for the newest [`Rest`].
pub(crate) const REST: usize = NONE as usize;

/// The way by which packets leave a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    /// By an edge. `alone` says whether an element of the path is to process them.
    Edge { edge: u32, alone: bool },
    /// They are dropped, and the code has counted them.
    Drop,
}

impl Exit {
    /// Whether an element of the path is to process the packets.
    pub fn is_alone(&self) -> bool {
        matches!(self, Exit::Edge { alone: true, .. })
    }
    /// The edge, unless packets are dropped.
    pub fn edge(&self) -> Option<u32> {
        match self {
            Exit::Edge { edge, .. } => Some(*edge),
            Exit::Drop => None,
        }
    }
}

/// A path that begins at an input.
pub(crate) struct Path {
    pub element: u32,
    pub input: u32,
    /// The node of the element.
    pub node: u32,
    /// The code, or the region that is being compiled. None if the path must be compiled again.
    pub job: Option<Arc<Job<Region, castanet_native::Path>>>,
    /// The number of batches before the path is compiled again.
    pub wait: u32,
    pub tries: u32,
    /// The number of times that elements of the path have changed.
    pub changes: u32,
    /// The element before the path.
    pub from: u32,
    /// Whether the path passes an input where packets of several tasks may wait for each other.
    pub meets: bool,
    pub exits: Box<[Exit]>,
    /// The first 64 ends at which elements of the path process packets, as bits.
    pub alone_ends: u64,
    pub counters: Box<[u64]>,
    /// The packets that have begun the path since the last check, and those of them that elements had to process.
    pub begun: u32,
    pub alone: u32,
    /// The elements of the path.
    pub members: Vec<u32>,
    pub account: Arc<Account>,
}

/// Packets that have passed a path, and wait for those before them.
pub(crate) struct Rest {
    pub path: usize,
    pub packets: Batch,
    pub ends: Vec<u16>,
    /// The number of packets that have gone on.
    pub gone: usize,
}

/// The compiled paths of a worker.
pub(crate) struct Paths {
    pub compiler: Option<Arc<PathCompiler>>,
    pub list: Vec<Path>,
    /// The ends by which the packets of the last batch have left.
    pub ends: Box<[u16; Batch::MAX]>,
    /// The rests, the newest last.
    pub rests: Vec<Rest>,
    /// Rests that are not in use.
    pub spare: Vec<Rest>,
    /// The ends of a part of a batch.
    pub found: Vec<u16>,
    /// The edges that were made for paths: by node, input, the element before it, and whether they lead to that
    /// element's own processing.
    pub made: HashMap<(u32, u32, u32, bool), u32>,
}

impl Paths {
    pub fn new(compiler: Option<Arc<PathCompiler>>) -> Paths {
        Paths {
            compiler,
            list: Vec::new(),
            ends: Box::new([0; Batch::MAX]),
            rests: Vec::new(),
            spare: Vec::new(),
            found: Vec::with_capacity(Batch::MAX),
            made: HashMap::new(),
        }
    }
    /// The number of a new edge.
    pub fn first(compiler: &PathCompiler) -> u32 {
        if compiler.when() == When::AtOnce { TRY } else { TRY + PATIENCE }
    }
    /// The number of packets that wait.
    pub fn waiting(&self) -> usize {
        self.rests.iter().map(|r| r.packets.len()).sum()
    }
    /// Whether packets that have passed a path wait for others.
    pub fn is_dividing(&self) -> bool {
        !self.rests.is_empty()
    }
    /// Ends the use of code that was made for an element, because the element has changed.
    pub fn forget(&mut self, element: u32) {
        self.list.iter_mut().filter(|p| p.members.contains(&element)).for_each(Path::forget);
    }
    /// Ends the use of all code.
    pub fn forget_all(&mut self) {
        self.list.iter_mut().for_each(Path::forget);
    }
}

impl Path {
    /// A path without code, which is never compiled.
    pub fn new(account: Arc<Account>, (element, input): (u32, u32), (node, from): (u32, u32)) -> Path {
        Path {
            element,
            input,
            node,
            job: None,
            wait: u32::MAX,
            tries: 0,
            changes: 0,
            from,
            meets: false,
            exits: Box::default(),
            alone_ends: 0,
            counters: Box::default(),
            begun: 0,
            alone: 0,
            members: Vec::new(),
            account,
        }
    }

    /// The same path without code.
    pub fn anew(&self) -> Path {
        let (start, at) = ((self.element, self.input), (self.node, self.from));
        Path { tries: self.tries, changes: self.changes, ..Path::new(self.account.clone(), start, at) }
    }

    /// Ends the use of the code, which is made again later. If elements change often, it is made after more and more batches.
    fn forget(&mut self) {
        if self.job.take().is_some() {
            self.wait = PATIENCE << self.changes.min(MOST_CHANGES);
            self.changes += 1;
        }
    }

    /// Sets the time until the path is compiled again, which becomes longer each time.
    pub fn begin_again(&mut self) {
        self.wait = PATIENCE << (2 * self.tries.min(TRIES));
        self.tries += 1;
    }

    /// Notes that packets have begun the path. Gives it up if its elements had to process too many.
    pub fn note(&mut self, packets: usize, alone: usize) {
        self.account.add(packets, alone);
        self.begun += packets as u32;
        self.alone += alone as u32;
        if self.begun < SAMPLE {
            return;
        }
        let too_many = self.alone > self.begun / 4;
        (self.begun, self.alone) = (0, 0);
        if too_many {
            self.job = None;
            self.begin_again();
        }
    }
}
