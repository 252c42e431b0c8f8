// SPDX-License-Identifier: MIT OR Apache-2.0
//! The public API of elements.
//!
//! A class is one struct in one file. `#[derive(Class)]` declares the class, `#[derive(Args)]` its arguments.
//! A class implements [`Action`] if it takes one packet and passes it on, perhaps by a side output. It
//! implements [`Element`] if it does anything else: classify, store, schedule, copy to many. What both have
//! in common (handlers, initialisation, cleaning up) is [`Lifecycle`]. The derive writes an empty
//! [`Lifecycle`] unless the class says `lifecycle`.
//!
//! ```
//! use castanet_element::prelude::*;
//!
//! /// Counts packets and passes them on.
//! #[derive(Class)]
//! #[class(name = "Tally", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
//! pub struct Tally {
//!     /// Packets seen.
//!     #[count(unit = "packets")]
//!     count: Count,
//! }
//!
//! impl Action for Tally {
//!     fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
//!         self.count.add(1);
//!         Verdict::Next
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

extern crate self as castanet_element;

pub mod build;
pub mod call_error;
pub mod class;
pub mod clock;
pub mod count;
pub mod cx;
pub mod error;
pub mod gauge;
pub mod handler;
pub mod kit;
pub mod notify;
pub mod package;
pub mod place;
pub mod random;
pub mod remote;
pub mod router;
pub mod run_loop;
pub mod shared_str;
pub mod watch;

pub use build::{BuildCx, ConfigError, InitCx};
pub use call_error::{Busy, CallError, Missing};
pub use castanet_derive::{Args, Class, Counts, handlers};
pub use castanet_kernel as kernel;
pub use castanet_packet as packet;
pub use castanet_spec as spec;
pub use class::{
    Action, AnyElement, Attached, Build, Class, ClassDef, Classes, Drive, Element, Engine, InKernel,
    Information, Instance, Level, Lifecycle, Object, Turn, Verdict, action, element, information,
};
pub use clock::Clock;
pub use count::{Count, CountVisitor, Counts, SharedCount};
pub use cx::Cx;
pub use error::ElementError;
pub use gauge::Gauge;
pub use handler::{HandlerError, Handlers};
pub use notify::{Note, Room, Signal};
pub use place::Place;
pub use random::{Random, Secret, Seed};
pub use remote::{Listener, Remote};
pub use router::{Info, Messages};
pub use shared_str::SharedStr;
pub use watch::{Interest, Watch};

/// What the source file of a class imports.
pub mod prelude {
    pub use crate::spec::arg::{ArgCx, ArgError, Args as _};
    pub use crate::spec::value::{Bandwidth, Capacity, Data, Interval, Nanos, Word};
    pub use crate::spec::{
        Anno1, Anno4, ArgValue, Capability, Counted, Effects, Elapsed, ElementRef, Filename, HandlerRef,
        IpList, Names, Origin, Prefix, Rate, Real, Reason, Seconds, Show, Table, Timestamp, ValueError,
    };
    pub use crate::{
        Action, Args, Build, BuildCx, CallError, Class, ConfigError, Count, Counts, Cx, Drive, Element,
        ElementError, Engine, Gauge, HandlerError, InKernel, Information, InitCx, Interest, Level, Lifecycle,
        Note, Object, Random, Room, Secret, SharedCount, Signal, Turn, Verdict, Watch, handlers,
    };
    pub use castanet_packet::{Batch, Packet, PacketType};
}
