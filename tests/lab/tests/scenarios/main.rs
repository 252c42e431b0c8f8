// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios with a router between hosts. Each also runs with the kernel as the router if the kernel supports
//! it, so that Castanet is compared with Linux.
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
mod in_kernel;
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
