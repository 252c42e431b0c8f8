// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz target `bpdu`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_tests::fuzz::bpdu::bpdu(data));
