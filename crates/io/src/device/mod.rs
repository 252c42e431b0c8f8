// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network devices of Linux: packet sockets, TUN and TAP, and information about devices.
//!
//! - [`PacketSocket`] receives the frames of a device through a ring in shared memory; [`PacketSender`] sends
//!   frames.
//! - [`xdp`] receives and sends frames around the host's network stack.
//! - [`LiveSender`] makes the kernel generate and send frames, faster than a program could.
//! - [`Tun`] creates a device whose other end is this program.
//! - [`HostPort`] gives frames back to the host that METHOD XDP has taken from it.
//! - [`info`] returns addresses, MTU and state of a device, and [`set_up`] sets them.
//! - [`Shield`] hides the received frames of a device from the host's own stack.
//! - [`VnetHeader`] describes the outstanding offloads of a frame: checksum and segmentation. [`complete`] and
//!   [`Segments`] do them in software.

mod abilities;
mod bpf;
mod btf;
mod error;
mod ethtool;
mod facts;
mod filter;
mod frame;
mod host_port;
mod live;
mod netlink;
pub mod owner;
mod packet;
mod port;
mod relations;
mod ring;
mod segment;
mod send;
pub mod shield;
mod sys;
mod tc;
mod tun;
mod vnet;
mod way;
pub mod xdp;

pub use abilities::{Abilities, XdpFeatures};
pub use error::DeviceError;
pub(crate) use error::OPEN_SOCKET;
pub use ethtool::{
    Offload, ReceiveRing, driver, receive_by_napi, receive_queues, receive_ring, set_receive_ring, statistics,
};
pub use facts::{
    DeviceInfo, Setup, Statistics, all, index, info, link_info, names, set_up, state, take_away,
};
pub use filter::Instruction;
pub use frame::{Frame, FrameKind};
pub use host_port::HostPort;
pub(crate) use host_port::{GIVE_BACK, open as open_host_port};
pub use live::{LIVE_FLOWS, LiveFrame, LiveSender};
pub(crate) use packet::open_socket;
pub use packet::{PacketOptions, PacketSocket};
pub use port::{UnknownPort, device_of_port};
pub use relations::{Peer, Relations, detach_xdp, other_filters, relations, release, xdp_program};
pub use segment::{Segments, Start};
pub use send::{MAX_BATCH, Outgoing, PacketSender, Refusal, Sent};
pub use shield::Shield;
pub use tun::{OFFLOAD_ALL, Tun, TunOptions};
pub use vnet::{BadOffload, VnetHeader, complete};
pub use way::BestWay;
