// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: a router gives way to another one without losing what it holds (TOCS 2000, §2.6).
//!
//! It has two phases. A thread that wants a swap *prepares*: it builds and initialises the new router beside the running one,
//! which does not notice. Then the workers return, each between two batches, and the thread that runs the router
//! *commits*: what is open outside is handed over, counts and state move, the new router takes the place of the old. What goes
//! wrong up to then leaves the old router as it was.

pub(crate) mod candidate;
pub(crate) mod cleaner;
pub(crate) mod commit;
pub(crate) mod error;
pub(crate) mod loader;
pub(crate) mod pairs;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod slot;

pub use candidate::Done;
pub use error::{HandoverError, SwapError};
pub use loader::{Loaded, Loader, Style};
pub use plan::Plan;
