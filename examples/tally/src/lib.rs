// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two element classes outside Castanet, one file each.
//!
//! `castanet build-package examples/tally` compiles the classes to a shared library. `src/main.rs` is a program that
//! links them.
#![forbid(unsafe_code)]

pub mod check_size;
pub mod tally_switch;

castanet_element::package! {
    action::<check_size::CheckSize>(),
    element::<tally_switch::TallySwitch>(),
}
