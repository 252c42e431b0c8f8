// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an element class declares, once, for everybody: the runtime, the checker, the tools, the manual.
//!
//! [`class`] holds the declaration, [`handler`] that of handlers, [`count`] that of counts, [`codes`] the port, processing and flow codes, [`reason`] why packets are dropped,
//! [`arg`] how arguments are bound, [`value`] the argument types, [`anno`] the packet annotations, [`names`] the names
//! that AddressInfo and PortInfo define, [`origin`] who may do what; [`lists`] joins lists of declarations.
#![forbid(unsafe_code)]

pub mod anno;
pub mod arg;
pub mod class;
pub mod codes;
pub mod count;
pub mod handler;
pub mod lists;
pub mod names;
pub mod origin;
pub mod reason;
mod services;
pub mod value;

pub use anno::{Anno1, Anno2, Anno4};
pub use arg::{ArgCx, ArgError, ArgKind, ArgSpec, Args, NoArgs, Parser, within};
pub use class::{Books, Capability, ClassSpec, Effects, Offload, Reconfigure, Workers};
pub use count::CountSpec;
pub use handler::{HandlerSpec, Merge, ValueKind};
pub use names::Names;
pub use origin::Origin;
pub use reason::Reason;
pub use value::{
    ArgValue, Counted, Elapsed, ElementRef, Filename, HandlerRef, IpList, Prefix, Rate, Real, Seconds, Show,
    Table, Timestamp, ValueError,
};
