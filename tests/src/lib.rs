// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens, models and scenarios that cross crates.
//!
//! - [`binary`] locates the castanet command for the tests.
//! - [`golden`] reads and compares the configuration goldens of tests/goldens.
//! - [`trace`] generates the traces of conf/traces from a seed.
//! - [`model`] checks the router's output for these traces. From the RFCs and the documentation of the element classes,
//!   the model derives what an IP router must do with them. It shares no code with the router.
//! - [`fuzz`] contains the bodies of the fuzz targets in fuzz/.
#![forbid(unsafe_code)]

pub mod binary;
pub mod fuzz;
pub mod golden;
pub mod model;
pub mod random_routers;
pub mod trace;
