// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element classes, one file each, in folders called families.
#![forbid(unsafe_code)]
// Tests open files by name, which Clippy's configuration forbids elsewhere.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

use castanet_element::ClassDef;

pub mod aqm;
pub mod arp;
pub mod basic;
pub mod classify;
pub mod control;
pub mod device;
pub mod ether;
mod handover;
pub mod icmp;
pub mod info;
pub mod ip;
mod line_output;
pub mod measure;
pub mod nat;
pub mod sched;
pub mod shape;
pub mod source;
pub mod storage;
pub mod trace;
pub mod transport;

/// The classes of all families.
pub const FAMILIES: &[&[ClassDef]] = &[
    basic::CLASSES,
    source::CLASSES,
    storage::CLASSES,
    sched::CLASSES,
    aqm::CLASSES,
    shape::CLASSES,
    classify::CLASSES,
    ether::CLASSES,
    arp::CLASSES,
    ip::CLASSES,
    icmp::CLASSES,
    transport::CLASSES,
    nat::CLASSES,
    measure::CLASSES,
    trace::CLASSES,
    device::CLASSES,
    control::CLASSES,
    info::CLASSES,
];
