// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ways in which ToDevice sends packets.

use castanet_io::device::xdp::XdpSender;
use castanet_io::device::{DeviceError, PacketSender};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An open device.
pub(super) enum Sender {
    Packet(PacketSender),
    Xdp(Box<XdpSender>),
}

impl Sender {
    /// The socket. It is writable while there is space for packets.
    pub fn fd(&self) -> Result<&Arc<OwnedFd>, DeviceError> {
        match self {
            Sender::Packet(sender) => Ok(sender.fd()),
            Sender::Xdp(sender) => sender.fd(),
        }
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        match self {
            Sender::Packet(sender) => sender.index(),
            Sender::Xdp(sender) => sender.index(),
        }
    }
}
