// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration graph and what is computed on it.
