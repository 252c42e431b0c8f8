// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of the host, and sockets: where packets enter and leave the router.

use castanet_element::{ClassDef, element};

pub mod mcast_socket;
pub mod raw_socket;
pub mod socket;
mod socket_pump;
pub mod socket_tables;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<mcast_socket::McastSocket>(),
    element::<raw_socket::RawSocket>(),
    element::<socket::Socket>(),
];
