// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an element class declares.
