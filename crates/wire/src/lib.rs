// SPDX-License-Identifier: MIT OR Apache-2.0
//! Header views and checksums over byte slices.
