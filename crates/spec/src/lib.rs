// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an element class declares, written once and used by the runtime, the checker, the tools and the
//! manual.
//!
//! [`class`] holds the declaration of a class, [`handler`] that of a handler, [`count`] that of a count.
//! [`codes`] has the port, processing and flow codes, [`packets`] the packet type codes, [`alignment`] the alignment codes, [`reason`] the reasons for drops, [`arg`] the binding
//! of arguments, [`value`] the argument types, [`anno`] the packet annotations. [`names`] has the names that
//! AddressInfo and PortInfo define, [`origin`] the rights of callers. [`lists`] joins lists of declarations.
#![forbid(unsafe_code)]

pub mod alignment;
pub mod anno;
pub mod arg;
pub mod class;
pub mod codes;
pub mod count;
pub mod flags;
pub mod handler;
pub mod lists;
pub mod names;
pub mod origin;
pub mod packets;
pub mod reason;
mod services;
pub mod value;

pub use alignment::AlignmentCode;
pub use anno::{Anno1, Anno2, Anno4};
pub use arg::{ArgCx, ArgError, ArgKind, ArgSpec, Args, Given, NoArgs, Parser, within};
pub use castanet_lang::{ClassName, ClassNames, bytes, flat::scope_of};
pub use class::{
    Capability, ClassSpec, ClassSpecs, Depends, Effects, HostUse, LedgerRole, Offload, Reconfigure, Workers,
};
pub use count::CountSpec;
pub use flags::HandlerFlags;
pub use handler::{HandlerSpec, Merge, ValueKind};
pub use names::Names;
pub use origin::Origin;
pub use packets::PacketCode;
pub use reason::Reason;
pub use value::{
    ArgValue, Counted, Elapsed, ElementRef, Filename, HandlerRef, IpList, Prefix, Rate, Real, Seconds, Show,
    Table, Timestamp, ValueError,
};
