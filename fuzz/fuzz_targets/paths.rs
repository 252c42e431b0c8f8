// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz target `paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_tests::fuzz::paths::paths(data));
