// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts made of network namespaces, joined by virtual Ethernet, for scenarios between real machines.
//!
//! No privileges are needed where user namespaces are allowed: a helper command of this package (`castanet-lab`) makes the
//! namespaces and enters them, since a test with its threads may not. Where they are not, [`Lab::new`] says why.
//!
//! - [`process`]: commands with a limit in time, ended by their process id.
//! - [`lab`]: [`Lab`], its hosts and links.
//! - [`wire`]: frames as they are on a link, sent and seen.
//! - [`frames`]: packets made by hand, right or wrong, and what matters in those that arrive.
//! - [`hostile`]: packets that no good host sends.
//! - [`router`]: the router between the hosts: the kernel, or a configuration of Castanet.
//!
//! Everything ends with the lab: processes are children of the test or end with it, and namespaces go with their last process.
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
pub use router::{Kind, Port, Router};
pub use wire::{Frame, Wire};
