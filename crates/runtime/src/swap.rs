// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: a new router replaces the running one without losing packets or state (TOCS 2000, §2.6).
//!
//! A hot swap has two phases. First, the thread that requests the swap *prepares* it: it builds and initialises the new
//! router, while the old one keeps running. Then the workers return, each between two batches, and the thread that
//! called `Router::run` *commits* the swap: it hands over open devices and files, moves counts and state, and replaces
//! the old router by the new one. If anything fails before the replacement, the old router continues unchanged.

pub(crate) mod candidate;
pub(crate) mod cleaner;
pub(crate) mod commit;
pub(crate) mod error;
pub(crate) mod loader;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod slot;

pub use candidate::Done;
pub use error::{HandoverError, SwapError};
pub use loader::{Loaded, Loader, Style};
pub use plan::Plan;
