// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has passed the compiled paths, for the handler `paths`.

use castanet_graph::Graph;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The packets of a path. Only its worker writes it.
#[derive(Default)]
pub(crate) struct Account {
    members: Mutex<Vec<u32>>,
    packets: AtomicU64,
    alone: AtomicU64,
}

/// The accounts of the paths of all workers.
pub(crate) type Accounts = Mutex<Vec<Arc<Account>>>;

impl Account {
    /// Adds packets that machine code has moved, and those of them that elements of the path must process.
    #[inline]
    pub fn add(&self, packets: usize, alone: usize) {
        for (sum, more) in [(&self.packets, packets - alone), (&self.alone, alone)] {
            sum.store(sum.load(Ordering::Relaxed).wrapping_add(more as u64), Ordering::Relaxed);
        }
    }
    /// Sets the elements of the path, the first one first.
    pub fn set_members(&self, members: &[u32]) {
        let mut all = self.members.lock();
        all.clear();
        // An element that packets reach in several states is there several times.
        for e in members {
            if !all.contains(e) {
                all.push(*e);
            }
        }
    }

    /// A line of the handler `paths`.
    pub fn line(&self, graph: &Graph) -> String {
        let names: Vec<&str> = self.members.lock().iter().map(|e| graph.name(*e as usize)).collect();
        let [packets, alone] = [&self.packets, &self.alone].map(|n| n.load(Ordering::Relaxed));
        format!("{packets}\t{alone}\t{}\n", names.join(" "))
    }
}
