// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens, models and scenarios that cross crates.
