// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifier languages and their decision trees.
