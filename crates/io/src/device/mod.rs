// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network devices of Linux: packet sockets, TUN and TAP, and what the system knows of its devices.
//!
//! - [`PacketSocket`] receives the frames of a device by a ring in shared memory, [`PacketSender`] sends frames.
//! - [`LiveSender`] has the system make frames and send them, faster than any program could hand them over.
//! - [`Tun`] makes a device of which this program is the other end.
//! - [`info`] tells addresses, MTU and state; [`set_up`] sets them; [`Shield`] keeps the host's own stack from a device.
//! - [`VnetHeader`] tells which work on checksums and segments is left to whoever sends a frame on; [`complete`] and
//!   [`Segments`] do it in software.

mod bpf;
mod error;
mod facts;
mod filter;
mod frame;
mod live;
mod netlink;
pub mod owner;
mod packet;
mod ring;
mod segment;
mod send;
pub mod shield;
mod sys;
mod tc;
mod tun;
mod vnet;

pub use error::DeviceError;
pub use facts::{
    DeviceInfo, Setup, Statistics, all, index, info, link_info, names, set_up, state, take_away,
};
pub use filter::Instruction;
pub use frame::{Frame, FrameKind};
pub use live::{LIVE_FLOWS, LiveFrame, LiveSender};
pub(crate) use packet::open_socket;
pub use packet::{PacketOptions, PacketSocket};
pub use segment::{Segments, Start};
pub use send::{MAX_BATCH, Outgoing, PacketSender, Refusal, Sent};
pub use shield::Shield;
pub use sys::receive_by_napi;
pub use tun::{OFFLOAD_ALL, Tun, TunOptions};
pub use vnet::{BadOffload, VnetHeader, complete};
