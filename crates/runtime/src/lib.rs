// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run loop, tasks, timers, workers, handlers.
