// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens, models and scenarios that cross crates.
//!
//! - [`trace`] makes the traces of conf/traces, from a seed.
//! - [`model`] says what an IP router must do with them, from the RFCs and the documentation of the element classes, and
//!   checks what it did. It shares no code with the router.
#![forbid(unsafe_code)]

pub mod model;
pub mod trace;
