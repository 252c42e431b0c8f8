// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two element classes from outside Castanet's own families, one file each.
//!
//! As a shared library, which any castanet loads: `castanet build-package examples/tally`. Linked into a program of one's own:
//! `src/main.rs` is one.
#![forbid(unsafe_code)]

pub mod check_size;
pub mod tally_switch;

castanet_element::package! {
    action::<check_size::CheckSize>(),
    element::<tally_switch::TallySwitch>(),
}
