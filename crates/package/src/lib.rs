// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages: crates of classes compiled to shared libraries, loaded and unloaded while a router runs.
//!
//! [`build`](mod@build) compiles a crate to a shared library, with the compiler and the compiled crates of this
//! castanet ([`sdk`]). [`driver`] links an executable with some of castanet's own classes in the same way. [`header`]
//! reads the build parameters of a file before any of its code runs. [`library`] loads a library. [`packages`] manages
//! the loaded libraries, searches for files, and supplies classes to routers. docs/packages.md explains the design.
//!
//! INVARIANT: the code of a library stays mapped as long as anything refers to it. Every element made from it
//! holds the library through a wrapper outside the library. Data that outlives routers (declarations, names) is
//! copied.

pub mod build;
pub mod code;
mod compiler;
pub mod driver;
pub mod header;
mod intern;
pub mod library;
pub mod packages;
pub mod sdk;

pub use header::Refusal;
pub use library::Library;
pub use packages::{Packages, WithPackages};
