// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crates that the code of `castanet devirtualize` is compiled against, in the versions that belong together.
#![forbid(unsafe_code)]

pub use castanet_element;
pub use castanet_elements;
pub use castanet_packet;
pub use castanet_runtime;

use castanet_elements::basic::null::Null;
use castanet_runtime::compiled::{Entry, Walk};
use std::any::TypeId;

/// A hash of the source of the classes and of the run loop.
pub const SOURCE: &str = env!("CASTANET_SOURCE");

/// The symbol of the [`Exported`] in a shared library.
pub const CODE_SYMBOL: &str = "CASTANET_CODE";

/// The type ids of a class and of a type of the run loop. A program and a library that was compiled against other copies of
/// the crates differ in them.
pub const fn types() -> [TypeId; 2] {
    [TypeId::of::<Null>(), TypeId::of::<Walk<'static, 'static>>()]
}

/// The code that a shared library exports.
pub struct Exported {
    /// The [`types`] of the library.
    pub types: [TypeId; 2],
    /// The elements that the code pushes packets to.
    pub sites: &'static [u32],
    /// The functions with which packets start: site, input, function.
    pub entries: &'static [(u32, u32, Entry)],
}

/// Whether two texts are the same, for assertions at compile time.
pub const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
