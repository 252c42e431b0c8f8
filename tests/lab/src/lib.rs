// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test hosts made of network namespaces and connected by virtual Ethernet links.
//!
//! No privileges are needed if user namespaces are allowed. A helper command of this package (`castanet-lab`)
//! creates and enters the namespaces, because a multithreaded test process cannot do so. If user namespaces
//! are not allowed, [`Lab::new`] returns the reason.
//!
//! - [`process`]: commands with a time limit, stopped by their process id.
//! - [`lab`]: [`Lab`], its hosts and links.
//! - [`wire`]: capturing and sending frames on a link.
//! - [`frames`]: building and parsing packets.
//! - [`hostile`]: packets of malicious hosts.
//! - [`router`]: the router between the hosts: the kernel, or a configuration of Castanet.
//!
//! Everything ends with the lab: its processes are stopped by the test or end with their parent process, and
//! a namespace ends with its last process.
#![forbid(unsafe_code)]

pub mod frames;
pub mod hostile;
pub mod lab;
pub mod process;
pub mod router;
pub mod wire;

pub use hostile::{Hostile, Scene};
pub use lab::{Host, Lab};
pub use process::{Output, Process};
pub use router::{Port, Router, RouterKind};
pub use wire::{Frame, Wire};
