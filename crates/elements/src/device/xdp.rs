// SPDX-License-Identifier: MIT OR Apache-2.0
//! METHOD XDP: what FromDevice and ToDevice have in common.

use super::claims::ROUTER;
use castanet_element::prelude::*;
use castanet_io::device::{self, Abilities, xdp};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The numbers of elements of a router with METHOD XDP. They decide how many packet buffers are allocated.
#[derive(Default)]
pub(super) struct Users {
    receivers: AtomicUsize,
    senders: AtomicUsize,
}

impl Users {
    /// Counts a receiver that is being built.
    pub fn with_receiver(cx: &mut BuildCx<'_>) -> Arc<Users> {
        let users = cx.share_as(ROUTER, Users::default);
        users.receivers.fetch_add(1, Ordering::Relaxed);
        users
    }
    /// Counts a sender that is being built.
    pub fn with_sender(cx: &mut BuildCx<'_>) -> Arc<Users> {
        let users = cx.share_as(ROUTER, Users::default);
        users.senders.fetch_add(1, Ordering::Relaxed);
        users
    }
    /// The number of buffers that all elements need together.
    pub fn buffers(&self) -> usize {
        xdp::buffers(self.receivers.load(Ordering::Relaxed), self.senders.load(Ordering::Relaxed))
    }
}

/// Returns what a user should know about a device whose frames arrive by XDP: one line for each thing.
pub(super) fn remarks(name: &str, way: xdp::Way, sniffer: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if sniffer {
        remarks.push(
            "METHOD XDP takes the frames from the host, which gets only what ToHost gives back; SNIFFER false says that \
             this is wanted"
                .to_string(),
        );
    }
    if way.generic {
        remarks.push(
            "the driver cannot run XDP programs, so the kernel runs them later (generic mode), which is slow; METHOD \
             PACKET may be faster"
                .into(),
        );
    }
    if !way.whole {
        remarks.push(
            "the MTU is larger than a buffer, and this kernel or driver cannot use several for a frame: longer frames are \
             lost"
                .into(),
        );
    }
    if Abilities::may_carry_offloads(device::driver(name).as_deref()) {
        remarks.push(format!(
            "the sender may leave checksums, segmentation and VLAN tags to the device, and METHOD XDP cannot complete \
             them; switch these offloads off at the other end of {name}: ethtool -K DEVICE tx off txvlan off"
        ));
    }
    remarks
}
