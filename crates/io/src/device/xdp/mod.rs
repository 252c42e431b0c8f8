// SPDX-License-Identifier: MIT OR Apache-2.0
//! AF_XDP: devices whose frames an XDP program passes to sockets, around the host's network stack.
//!
//! The buffers of packets are shared with the kernel (the UMEM). If the driver supports it, the device itself reads and
//! writes them; otherwise the kernel copies frames. All devices of the process share one
//! [`Region`](castanet_packet::Region), so a packet that is received by one and sent by another is not copied by this
//! program.
//!
//! Frames carry no offloads this way: whoever sends partial checksums or super-packets to the device (a container on the
//! other end of a veth pair, for example) must complete them itself.

mod attached;
mod failures;
mod pins;
mod port;
mod program;
mod receiver;
mod registry;
mod ring;
mod sender;
mod steering;
mod sys;
mod verifier;

pub use super::bpf::{Map, MapKind, MapShape, SharedWords, XdpMode};
pub use attached::{AttachedProgram, ObservedProgram};
pub use failures::{SendFailures, Watched};
pub use pins::{DEFAULT_FOLDER, end as end_pins, is_pinned, pin_for_router, pin_in, remove_left, take_over};
pub(crate) use pins::{end_for_router, pin_counts};
pub(crate) use port::open_own as open_socket;
pub(crate) use program::{LOAD, PARTS, PIN, Used, map_error};
pub use program::{
    MapRef, ProgramMap, Trial, check_program, exact_program_time, program_time, run_plain, run_program,
};
pub use receiver::{LostFrame, XdpReceiver};
pub use sender::XdpSender;
pub use steering::wait_for_programs;
pub(crate) use steering::{ATTACH, Attachment, mode_of};
pub use verifier::Refusal;

/// The longest header before an IP packet in bytes: Ethernet with one VLAN tag.
const HEADER: usize = 18;

/// The headroom of received packets in bytes, except of those that were in several buffers.
pub const HEADROOM: usize = sys::FRAME_HEADROOM as usize;
/// The length in bytes of an Ethernet header with a VLAN tag.
pub const LINK_HEADER: usize = 18;

/// Options of an [`XdpReceiver`] and an [`XdpSender`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// Whether to receive frames addressed to other hosts (promiscuous mode).
    pub promiscuous: bool,
    /// Which queues to receive from.
    pub share: Share,
    /// The number of buffers that all devices of the process need together.
    pub buffers: usize,
    /// Whether to poll the device in system calls, instead of waiting for its interrupts.
    pub busy_poll: bool,
}

/// The queues of one receiver, among several that share a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of this receiver, from 0.
    pub member: u32,
    /// The number of receivers.
    pub members: u32,
}

impl Share {
    /// A single receiver, which gets all queues.
    pub const WHOLE: Share = Share { member: 0, members: 1 };

    /// The queues of this receiver, of `all` queues.
    fn queues(self, all: u32) -> Vec<u32> {
        (0..all).filter(|q| q % self.members.max(1) == self.member).collect()
    }
}

/// The number of buffers that `receivers` receivers and `senders` senders need, with some thousand for packets inside the
/// router.
pub fn buffers(receivers: usize, senders: usize) -> usize {
    (port::RING as usize).saturating_mul(receivers.saturating_add(senders)).saturating_add(8192)
}

/// How frames come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether the XDP program runs in generic mode, because the driver cannot run it.
    pub generic: bool,
    /// Whether the device accesses the packets itself, without copies by the kernel.
    pub zero_copy: bool,
    /// The number of queues.
    pub queues: usize,
    /// Whether frames up to the device's MTU can be received. If not, the kernel drops frames longer than one buffer.
    pub whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_share_all_queues() {
        assert_eq!(Share::WHOLE.queues(3), [0, 1, 2]);
        let of = |member| Share { member, members: 3 }.queues(8);
        assert_eq!([of(0), of(1), of(2)].map(|q| q.len()).iter().sum::<usize>(), 8);
        assert_eq!(of(1), [1, 4, 7]);
        assert_eq!(Share { member: 1, members: 2 }.queues(1), []);
    }
}
