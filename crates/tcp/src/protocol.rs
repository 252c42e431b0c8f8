// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP of protocols/tcp with all its extensions, compiled by this crate's build script.

include!(concat!(env!("OUT_DIR"), "/protocol.rs"));
