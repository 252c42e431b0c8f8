// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz target `tcp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_tests::fuzz::tcp::tcp(data));
