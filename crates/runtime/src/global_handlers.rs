// SPDX-License-Identifier: MIT OR Apache-2.0
//! The global handlers: their declarations, and what a read or a write of each does.

use crate::driver_elements::DriverElement;
use crate::handlers::DROP_REASONS;
use crate::shared::{Shared, SwapCommand};
use castanet_element::{CallError, HandlerError, Missing};
use castanet_spec::{HandlerFlags, HandlerSpec, Merge, Origin, ValueKind};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The version of Click whose language and interfaces castanet follows. Clients check this version.
pub const CLICK_VERSION: &str = "2.1";
/// A global handler: its declaration, and how it is read and written.
struct GlobalHandler {
    spec: HandlerSpec,
    read: Option<GlobalRead>,
    write: Option<GlobalWrite>,
}

/// How the value of a global handler is computed.
#[derive(Clone, Copy)]
pub(crate) enum GlobalRead {
    /// Any thread can compute the value from the data that all workers share.
    Anywhere(fn(&Shared) -> String),
    /// The value is the speed of the clock. A worker must read it from its own clock.
    Timewarp,
    /// The value is the table of all drops. Only a worker can compute this table, because it must call the other
    /// workers for their drops.
    Drops,
    /// The value is the ledger, for which a worker must call the other workers too.
    Ledger,
    /// The value is the lengths of the queues. Only workers can read the handlers of elements.
    Queues,
    /// Any thread can return the value, which depends on the parameters.
    With(fn(&Shared, &str) -> Result<String, HandlerError>),
}

/// What a write to a global handler does.
#[derive(Clone, Copy)]
pub(crate) enum GlobalWrite {
    /// Requests that the router stop. If there is a driver script, the script decides on each request. Otherwise the
    /// router stops.
    Stop,
    /// Changes the speed of the clock.
    Timewarp,
    /// Begins or ends a profile.
    Profile,
    /// A request that can be carried out on any thread.
    Request(fn(&Shared, &str) -> Result<(), HandlerError>),
    /// A client's command about the next configuration: replace the current one, load a package, or show the plan of a
    /// swap.
    Swap(SwapCommand),
}

/// The flags of the handlers that show packets.
const OBSERVE: HandlerFlags =
    HandlerFlags::READ_WRITE.union(HandlerFlags::PARAMETERS).union(HandlerFlags::UNCOMMON);

const fn value(name: &'static str, doc: &'static str, read: fn(&Shared) -> String) -> GlobalHandler {
    let spec = HandlerSpec::new(name, HandlerFlags::READ, doc, ValueKind::Text);
    GlobalHandler { spec, read: Some(GlobalRead::Anywhere(read)), write: None }
}

const fn swap(name: &'static str, doc: &'static str, command: SwapCommand) -> GlobalHandler {
    let spec =
        HandlerSpec::new(name, HandlerFlags::WRITE.union(HandlerFlags::RECONFIGURES), doc, ValueKind::Text);
    GlobalHandler { spec, read: None, write: Some(GlobalWrite::Swap(command)) }
}

/// The global handlers that every router has.
static ALWAYS: [GlobalHandler; 20] = [
    value("version", "The version of Click whose language and interfaces this program has.", |_| {
        CLICK_VERSION.to_string()
    }),
    value("driver", "The kind of driver: always userlevel.", |_| "userlevel".to_string()),
    value("config", "The configuration as it was read.", |s| s.config.to_string()),
    value("flatconfig", "The configuration with compounds expanded.", Shared::flat_config),
    value("requirements", "The requirements of the configuration, one per line.", |s| {
        lines(s.graph.flat.requirements.iter().map(|r| format!("{} {}", r.0, r.1)))
    }),
    value("handlers", "The global handlers with their flags.", |s| {
        lines(s.globals().map(|h| format!("{}\t{}", h.name, h.flags)))
    }),
    value("list", "The number of elements, then their names, one per line.", |s| {
        let names = s.all_names();
        format!("{}\n{}", names.len(), lines(names))
    }),
    value("classes", "The names of all classes, one per line.", |s| lines(s.classes.names())),
    value("packages", "The loaded packages, one per line.", |s| lines(s.supervisor.packages())),
    GlobalHandler {
        spec: HandlerSpec::new(
            "kernel",
            HandlerFlags::READ,
            "The elements that packets reach in the kernel, with the driver xdp. One line per element: the element, its \
             class, its instructions (-: it runs at user level), the packets that came up there, why packets come up (empty: a rare case), \
             separated by tabs.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::Anywhere(Shared::kernel_table)),
        write: None,
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "paths",
            HandlerFlags::READ,
            "The paths that are machine code. One line per path: the packets that it has moved, the packets that began it but were \
             processed by its elements, and the names of its elements, separated by tabs.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::Anywhere(Shared::paths_table)),
        write: None,
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "workers",
            HandlerFlags::READ,
            "Workers, one line each: the number, the seconds that it was awake, the seconds that it exists, the \
             number of its tasks, the seconds of those awake in which its tasks found no packet, separated by tabs.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::Anywhere(Shared::workers)),
        write: None,
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "profile",
            HandlerFlags::READ_WRITE,
            "The cost of elements, measured in a sample of the time. Write true to begin a profile, and false to end it. \
             One line per worker and element: the worker, the element and its class (both - for the run loop), the \
             nanoseconds, the packets, separated by tabs.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::Anywhere(Shared::profile)),
        write: Some(GlobalWrite::Profile),
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "trace",
            OBSERVE,
            "Packets that are followed through the router. Write 'ID COUNT FILTER' to follow the next COUNT packets that \
             match FILTER, an expression of IPFilter, and 'ID end' to end the trace. Read with 'ID LINE' to get the lines \
             from number LINE on, and to forget those before.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::With(|s, parameters| s.session.observers.read_trace(parameters))),
        write: Some(GlobalWrite::Request(|s, value| {
            s.session.observers.write_trace(&s.names, value)?;
            s.wake_all();
            Ok(())
        })),
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "tap",
            OBSERVE,
            "Packets that pass a port, copied. Write 'ID ELEMENT[OUTPUT] COUNT BYTES FILTER' or 'ID [INPUT]ELEMENT COUNT \
             BYTES FILTER' to copy the first BYTES bytes of the next COUNT packets that match FILTER (0: all bytes, any \
             number), and 'ID end' to end the tap. Read with 'ID LINE' as trace.",
            ValueKind::Table,
        ),
        read: Some(GlobalRead::With(|s, parameters| s.session.observers.read_tap(parameters))),
        write: Some(GlobalWrite::Request(|s, value| {
            s.session.observers.write_tap(&s.graph, &s.names, value)?;
            s.wake_all();
            Ok(())
        })),
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "timewarp",
            HandlerFlags::READ_WRITE,
            "The speed of the router's clock: 1 is real time.",
            ValueKind::Gauge,
        ),
        read: Some(GlobalRead::Timewarp),
        write: Some(GlobalWrite::Timewarp),
    },
    GlobalHandler {
        spec: HandlerSpec::new(
            "stop",
            HandlerFlags::WRITE,
            "Sends the driver requests to stop; the value is their number.",
            ValueKind::Text,
        ),
        read: None,
        write: Some(GlobalWrite::Stop),
    },
    GlobalHandler {
        spec: HandlerSpec {
            unit: "packets",
            merge: Merge::Sum,
            ..HandlerSpec::new(
                DROP_REASONS,
                HandlerFlags::READ.union(HandlerFlags::UNCOMMON),
                "Packets dropped, one line per element and reason: the element, the reason, the number, separated by \
                 tabs.",
                ValueKind::Table,
            )
        },
        read: Some(GlobalRead::Drops),
        write: None,
    },
    GlobalHandler {
        spec: HandlerSpec {
            unit: "packets",
            merge: Merge::Sum,
            ..HandlerSpec::new(
                "ledger",
                HandlerFlags::READ.union(HandlerFlags::UNCOMMON),
                "Packets, one line per element: the element, its class, the numbers of packets that entered the router \
                 through it, that it made from others, that left through it, that it dropped, and that it holds, separated \
                 by tabs. Elements without packets are left out. The line with - for the element and the class has the \
                 packets between elements.",
                ValueKind::Table,
            )
        },
        read: Some(GlobalRead::Ledger),
        write: None,
    },
    GlobalHandler {
        spec: HandlerSpec {
            unit: "packets",
            ..HandlerSpec::new(
                "queues",
                HandlerFlags::READ.union(HandlerFlags::UNCOMMON),
                "Queues, one line per element: the element, its length, its capacity, separated by tabs.",
                ValueKind::Table,
            )
        },
        read: Some(GlobalRead::Queues),
        write: None,
    },
];

/// The additional global handlers of a router that allows hot swaps.
static OF_SWAPS: [GlobalHandler; 3] = [
    swap(
        "hotconfig",
        "Replaces the configuration by the written one, if hot swaps are allowed.",
        SwapCommand::Replace,
    ),
    swap(
        "loadpackage",
        "Loads a package of classes, by name or file, for later configurations.",
        SwapCommand::LoadPackage,
    ),
    // `swapplan` only returns a text, but it loads the files that the written configuration requires. So it is a write
    // handler: the caller's right to load files is checked for write handlers only.
    swap(
        "swapplan",
        "Returns the changes that a hot swap to the written configuration would make.",
        SwapCommand::Plan,
    ),
];

fn all(swaps: bool) -> impl Iterator<Item = &'static GlobalHandler> {
    ALWAYS.iter().chain(if swaps { &OF_SWAPS[..] } else { &[] })
}

/// Returns the global handlers that every router has. If `swaps` is true, also returns those of a router that allows
/// hot swaps.
pub fn global(swaps: bool) -> impl Iterator<Item = &'static HandlerSpec> {
    all(swaps).map(|h| &h.spec)
}

/// Returns the number of stop requests for a write of `value` to the global handler `stop`: the number in `value`, or 1
/// if `value` is not a number.
pub(crate) fn requests(value: &str) -> u32 {
    value.trim().parse().unwrap_or(1)
}

fn lines<T: std::fmt::Display>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}");
        out
    })
}

impl Shared {
    /// Returns the global handler with this name. None if the router has no such handler.
    fn global_handler(&self, name: &str) -> Option<&'static GlobalHandler> {
        all(self.supervisor.allows_swaps()).find(|h| h.spec.name == name)
    }
    /// Returns how a global handler is read. None if there is no such handler, or if it cannot be read.
    pub(crate) fn global_read(&self, name: &str) -> Option<GlobalRead> {
        self.global_handler(name)?.read
    }
    /// Returns what a write to a global handler does.
    ///
    /// # Errors
    /// When there is no such handler, it cannot be written, or the origin `from` may not write it.
    pub(crate) fn global_write(&self, from: Origin, name: &str) -> Result<GlobalWrite, CallError> {
        let handler = self.global_handler(name);
        match handler.and_then(|h| Some((h, h.write?))) {
            None => Err(Missing::Write(name.to_string()).into()),
            Some((h, GlobalWrite::Swap(_))) if !from.may_write(h.spec.flags) => {
                Err(CallError::Denied(name.to_string()))
            }
            Some((_, write)) => Ok(write),
        }
    }
    /// Returns the global handlers of this router.
    pub fn globals(&self) -> impl Iterator<Item = &'static HandlerSpec> {
        global(self.supervisor.allows_swaps())
    }
    /// Returns the value of a global read handler, or of `ELEMENT.HANDLER` for an element of the driver. Returns none
    /// if there is no such handler, or if only a worker can compute its value.
    pub fn global(&self, handler: &str) -> Option<String> {
        match self.global_handler(handler) {
            Some(h) => match h.read? {
                GlobalRead::Anywhere(read) => Some(read(self)),
                GlobalRead::Timewarp
                | GlobalRead::Drops
                | GlobalRead::Ledger
                | GlobalRead::Queues
                | GlobalRead::With(_) => None,
            },
            None => self.of_driver(handler),
        }
    }
    /// Returns the flat configuration, with the changes of live reconfigurations.
    fn flat_config(&self) -> String {
        let configs = self.build_state.configs();
        if configs.is_empty() {
            return castanet_lang::print::driver(&self.graph.flat);
        }
        let mut flat = self.graph.flat.clone();
        for (e, text) in configs {
            if let Some(element) = flat.elements.get_mut(e as usize) {
                element.config = text;
            }
        }
        castanet_lang::print::driver(&flat)
    }
    /// Returns the value of the global handler `workers`.
    fn workers(&self) -> String {
        let mut out = String::new();
        for (w, inbox) in self.inboxes.iter().enumerate() {
            let (awake, exists) = inbox.waker.times();
            let tasks = self.placement.tasks_of(w).len();
            let polled = Duration::from_nanos(inbox.polled.load(Ordering::Relaxed)).min(awake);
            let [awake, exists, polled] = [awake, exists, polled].map(|t| t.as_secs_f64());
            let _ = writeln!(out, "{w}\t{awake:.6}\t{exists:.6}\t{tasks}\t{polled:.6}");
        }
        out
    }
    /// Returns the names of all elements: first those of the configuration, then those of the driver.
    pub(crate) fn all_names(&self) -> Vec<String> {
        let mut names: Vec<_> = (0..self.graph.len()).map(|e| self.graph.name(e).to_string()).collect();
        names.extend(self.driver_elements().into_iter().map(|e| e.name));
        names
    }
    /// Returns the elements of the driver. Leaves out those with the same name as an element of the configuration.
    pub fn driver_elements(&self) -> Vec<DriverElement> {
        let all = self.supervisor.driver_elements().into_iter();
        all.filter(|e| self.find(&e.name).is_none()).collect()
    }
    /// Returns the value of `ELEMENT.HANDLER` for an element of the driver. None if there is no such handler.
    fn of_driver(&self, name: &str) -> Option<String> {
        let (element, handler) = name.rsplit_once('.')?;
        self.driver_elements().iter().find(|e| e.name == element)?.read(handler, "").ok()
    }
    /// Returns the number of stop requests that have not been answered yet.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}
