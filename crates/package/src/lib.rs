// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages: crates of classes as shared libraries, built, checked, loaded while a router runs, and unloaded.
//!
//! [`build`](mod@build) makes a shared library of a crate, with the compiler and the very libraries that this castanet was
//! made with ([`sdk`]). [`header`] reads what a file was built with, before anything in it runs. [`library`] loads one;
//! [`packages`] keeps the loaded ones, finds files, and gives routers the classes. docs/packages.md has the reasons.
//!
//! INVARIANT: code of a library is mapped as long as anything points to it. Every element made from it holds the library, from
//! outside; what outlives routers (declarations, names) is copied.

pub mod build;
pub mod header;
mod intern;
pub mod library;
pub mod packages;
pub mod sdk;

pub use header::Refusal;
pub use library::Library;
pub use packages::{Packages, WithPackages};
