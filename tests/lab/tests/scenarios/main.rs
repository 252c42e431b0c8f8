// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router among hosts. Every scenario runs with the kernel as the router too, where the kernel can do it, so that what is
//! asked of Castanet is what Linux does.
#![forbid(unsafe_code)]

mod advertise;
mod arp;
mod bad;
mod curves;
mod devices;
mod errors;
mod firewall;
mod forward;
mod gateway;
mod hostile;
mod local;
mod mobile;
mod nat;
mod net;
mod offload;
mod options;
mod privileges;
mod quiet;
mod size;
mod source_route;
mod swap;
mod switch;
mod transfer;
mod vlan;
