// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derive macros for element classes and their arguments.
