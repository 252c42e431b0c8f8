// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route tables, rings, timer queues.
