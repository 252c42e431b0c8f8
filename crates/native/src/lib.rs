// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine code that is made while a router runs.
//!
//! An element has a [`Job`]: a program, and room for its machine code. Until the code is there, the element interprets the
//! program. [`Code`] is the code, with a safe way to call it. A [`Compiler`] makes the code of all jobs of a router on a
//! thread of its own, so that packets never wait for it. This crate knows neither the programs nor how they are compiled.

mod code;
mod compiler;
mod path;

pub use code::{Code, Entry, SHORT};
pub use compiler::{Compiler, Job, When};
pub use path::{Path, PathEntry};
