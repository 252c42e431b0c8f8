// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Figure 8 path: its addresses and routes, the text of its configuration, and functions that build its router.

use crate::frames::{Traffic, frames};
use crate::rounds::Rounds;
use castanet_classes::Registry;
use castanet_element::build::of_router;
use castanet_element::{ClassDef, Clock, element};
use castanet_jit::{When, compiler, path_compiler};
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Given, Options, Router};
use castanet_tables::{Prefix, Route, StaticTable};
use std::fmt::Write;
use std::sync::Arc;

/// The router's Ethernet addresses.
pub const ETHER: [[u8; 6]; 2] = [[0x00, 0x00, 0xc0, 0xae, 0x67, 0xef], [0x00, 0x00, 0xc0, 0x4f, 0x71, 0xef]];
/// The router's IP addresses.
pub const ADDRESS: [u32; 2] = [ip(1, 0, 0, 1), ip(2, 0, 0, 1)];
/// The MTU of both links, in bytes.
pub const MTU: usize = 1500;
/// Invalid source addresses: 0.0.0.0, 255.255.255.255, and the broadcast addresses of the two networks.
pub const BAD_SOURCES: [u32; 4] = [0, u32::MAX, ip(1, 255, 255, 255), ip(2, 255, 255, 255)];
/// The IP addresses of the gateways, by interface.
pub const GATEWAYS: [[u32; 2]; 2] = [[ip(1, 0, 0, 88), ip(1, 0, 0, 66)], [ip(2, 0, 0, 77), ip(2, 0, 0, 99)]];
/// The capacity of each output queue, in packets.
pub const QUEUE: usize = 1000;

/// The text of the configuration of the path.
pub const PATH: &str = include_str!("../../conf/bench/fig8-path.click");
/// The configurations that measure the cost of a queue.
pub const QUEUE_PATH: &str = include_str!("../../conf/bench/fig8-queue.click");

const fn ip(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

/// The Ethernet address of a host or gateway. Its last byte is that of the IP address, as in conf/traces.
pub fn ether(interface: usize, address: u32) -> [u8; 6] {
    [2, 0, if interface == 0 { 1 } else { 2 }, 0, 0, address as u8]
}

/// The routes of the configuration. Port 0 is the router itself; 1 and 2 are the interfaces.
pub fn routes() -> StaticTable {
    let [[a, b], [c, d]] = GATEWAYS;
    let mut table = StaticTable::new();
    for (addr, len, gw, port) in [
        (ADDRESS[0], 32, 0, 0),
        (ADDRESS[1], 32, 0, 0),
        (ip(1, 0, 0, 0), 8, 0, 1),
        (ip(4, 0, 0, 0), 8, a, 1),
        (ip(6, 0, 0, 0), 8, b, 1),
        (ip(2, 0, 0, 0), 8, 0, 2),
        (ip(3, 0, 0, 0), 8, c, 2),
        (0, 0, d, 2),
    ] {
        // The prefixes are distinct and the table is not limited, so insertion cannot fail.
        let _ = table.insert(Prefix::new(addr, len), Route { gw, port });
    }
    table
}

/// Variables of a configuration, with their values.
pub type Defines = Vec<(String, String)>;

/// The frames of a source in configuration syntax.
pub fn literal(frames: &[Vec<u8>]) -> String {
    frames.iter().fold(String::new(), |mut text, frame| {
        text.push_str("\\<");
        for b in frame {
            // Writing to a string cannot fail.
            let _ = write!(text, "{b:02x}");
        }
        text.push_str("> ");
        text
    })
}

/// The variables that set up the configuration of the path for a traffic pattern.
pub fn defines(traffic: Traffic, batch: usize, packets: u64) -> Defines {
    let [color0, color1] = traffic.colors();
    [
        ("FRAMES0", literal(&frames(traffic, 0))),
        ("FRAMES1", literal(&frames(traffic, 1))),
        ("RANDOM", (traffic == Traffic::Four).to_string()),
        ("LIMIT", packets.to_string()),
        ("BURST", batch.to_string()),
        ("COLOR0", color0.to_string()),
        ("COLOR1", color1.to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

/// How a configuration is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The number of packets that its sources and its `Unqueue`s move at a time, 1 to 256.
    pub batch: usize,
    /// Whether the router is optimised as it is loaded: then tasks may have several turns at once, and classifiers are
    /// machine code from the first packet on. The papers' routers were not.
    pub optimize: bool,
}

impl Mode {
    /// The router as it is written.
    pub fn plain(batch: usize) -> Mode {
        Mode { batch, optimize: false }
    }
    /// The options of the router.
    pub(crate) fn options(self) -> Options {
        let default = Options::default();
        let batch = if self.optimize { self.batch.max(default.batch) } else { self.batch };
        let given = if self.optimize { compilers() } else { default.given };
        Options { batch, optimize: self.optimize, clock: Clock::real(), given, ..default }
    }
}

/// Compilers of machine code, which is ready before the first packet.
fn compilers() -> Given {
    let mut given = of_router(compiler(When::AtOnce));
    given.extend(of_router(path_compiler(When::AtOnce)));
    given
}

/// Builds a router with the classes of the project and additional ones.
///
/// # Errors
/// The errors of the configuration as text.
pub fn router(
    text: &str,
    defines: &Defines,
    mode: Mode,
    more: &[ClassDef],
    clock: Clock,
) -> Result<Router, String> {
    let mut registry = Registry::new();
    registry.add(element::<Rounds>());
    for &class in more {
        registry.add(class);
    }
    let loaded = Loaded::from_text("fig8-path.click", text.as_bytes(), defines, Arc::new(registry));
    let options = Options { clock, ..mode.options() };
    let built = loaded.and_then(|(loaded, _)| loaded.build(options));
    built.map(|(router, _)| router).map_err(|e| e.to_string())
}

/// Adds the Ethernet address of a next hop to the configuration's ARP table.
///
/// # Errors
/// The error of the handler.
pub fn insert(router: &mut Router, interface: usize, address: u32) -> Result<(), String> {
    let [a, b, c, d, e, f] = ether(interface, address);
    let value =
        format!("{} {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}", std::net::Ipv4Addr::from_bits(address));
    let querier = router.find(if interface == 0 { "arp0" } else { "arp1" });
    router.write(querier, "insert", &value).map_err(|e| e.to_string())
}
