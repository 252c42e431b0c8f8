// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens, models and scenarios that cross crates.
//!
//! - [`binary`] finds the castanet command that the tests run.
//! - [`golden`] reads and compares the configuration goldens of tests/goldens.
//! - [`trace`] makes the traces of conf/traces, from a seed.
//! - [`model`] says what an IP router must do with them, from the RFCs and the documentation of the element classes, and
//!   checks what it did. It shares no code with the router.
//! - [`fuzz`] holds what the fuzz targets of fuzz/ do with their input.
#![forbid(unsafe_code)]

pub mod binary;
pub mod fuzz;
pub mod golden;
pub mod model;
pub mod trace;
