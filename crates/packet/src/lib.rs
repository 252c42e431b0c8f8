// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets, buffers, pools, batches, annotations.
