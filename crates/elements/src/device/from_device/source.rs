// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ways in which FromDevice receives frames.

use crate::device::intake::Intake;
use castanet_element::Watch;
use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::xdp::{LostFrame, XdpReceiver};
use castanet_io::device::{DeviceError, PacketSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An open device.
pub(super) enum Source {
    /// A packet socket.
    Packet(PacketSocket),
    /// AF_XDP sockets.
    Xdp(Box<XdpReceiver>),
}

/// An open device and the watches of its sockets.
pub(super) struct Open {
    pub source: Source,
    pub watches: Vec<Watch>,
}

impl Source {
    /// The sockets. Each is readable while it has frames.
    pub fn fds(&self) -> Vec<Arc<OwnedFd>> {
        match self {
            Source::Packet(socket) => vec![socket.fd().clone()],
            Source::Xdp(receiver) => receiver.fds().cloned().collect(),
        }
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        match self {
            Source::Packet(socket) => socket.index(),
            Source::Xdp(receiver) => receiver.index(),
        }
    }
    pub fn link(&self) -> LinkType {
        match self {
            Source::Packet(socket) => socket.link(),
            Source::Xdp(_) => LinkType::ETHERNET,
        }
    }
    /// The number of frames that the kernel dropped because they were not read in time.
    pub fn drops(&mut self) -> u64 {
        match self {
            Source::Packet(socket) => socket.drops(),
            Source::Xdp(receiver) => receiver.drops(),
        }
    }
    /// The maximum number of frames that can wait.
    pub fn slots(&self) -> usize {
        match self {
            Source::Packet(socket) => socket.slots(),
            Source::Xdp(receiver) => receiver.slots(),
        }
    }
    /// Whether an error is pending for which the descriptor does not become readable.
    pub fn has_error(&self) -> bool {
        match self {
            Source::Packet(socket) => socket.has_error(),
            Source::Xdp(_) => false,
        }
    }
    /// Returns the pending error. Each error is returned once.
    pub fn check(&mut self) -> Result<(), DeviceError> {
        match self {
            Source::Packet(socket) => socket.check(),
            Source::Xdp(receiver) => receiver.check(),
        }
    }
    /// Switches promiscuous mode from the state `before` to the state `now`.
    pub fn set_promiscuous(&mut self, before: bool, now: bool) -> Result<(), DeviceError> {
        match self {
            Source::Packet(socket) => socket.set_promiscuous(before, now),
            Source::Xdp(receiver) => receiver.set_promiscuous(now),
        }
    }
    /// Switches on or off the reception of frames that the host itself sends.
    pub fn set_outgoing(&self, outgoing: bool) {
        if let Source::Packet(socket) = self {
            socket.set_outgoing(outgoing);
        }
    }
    /// Describes how frames are received.
    pub fn way(&self) -> String {
        let Source::Xdp(receiver) = self else { return "packet socket".into() };
        let way = receiver.way();
        let mode = if way.generic { "generic" } else { "driver" };
        let copy = if way.zero_copy { "zero-copy" } else { "copy" };
        format!("xdp {mode} {copy} {} {}", way.queues, if way.queues == 1 { "queue" } else { "queues" })
    }

    /// Receives up to `max` frames, and calls `each` with a packet for each that `keep` accepts by the kernel's
    /// timestamp. XDP frames have no kernel timestamp: all are accepted. Returns the number of frames.
    pub fn receive(
        &mut self,
        max: usize,
        intake: &mut Intake,
        keep: impl Fn(i64) -> bool,
        cx: &mut Cx<'_>,
        mut each: impl FnMut(Packet),
    ) -> usize {
        match self {
            Source::Packet(socket) => socket.receive(max, |frame| {
                if keep(frame.time_ns) {
                    cx.entered(1);
                    if let Some(p) = intake.packet(frame, cx) {
                        each(p);
                    }
                }
            }),
            Source::Xdp(receiver) => receive_by_xdp(receiver, max, intake, cx, each),
        }
    }
}

/// Receives up to `max` frames by XDP, and sets their timestamps to the current time.
pub(super) fn receive_by_xdp(
    receiver: &mut XdpReceiver,
    max: usize,
    intake: &Intake,
    cx: &mut Cx<'_>,
    mut each: impl FnMut(Packet),
) -> usize {
    let ether = receiver.ether();
    // The clock is read only if there is a frame, because most calls of a task that polls find none.
    let mut now = None;
    let n = receiver.receive(max, |frame| match frame {
        Ok(p) => each(intake.complete(p, *now.get_or_insert_with(|| cx.now()), ether)),
        Err(LostFrame::NoBuffer) => cx.count_drops(Reason::NoBuffer, 1),
        Err(LostFrame::TooLong) => cx.count_drops(Reason::TooLong, 1),
        Err(LostFrame::Invalid) => cx.count_drops(Reason::Truncated, 1),
    });
    cx.entered(n as u64);
    n
}
