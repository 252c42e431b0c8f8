// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages of the spanning tree protocol (IEEE 802.1D-1998 section 9), in the frames that carry them.

pub use castanet_wire::EtherAddr;

/// The bridge group address, which is the destination of all messages (table 7-9).
pub const GROUP: EtherAddr = EtherAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
/// The length of a frame with a message, in bytes, padded to the minimum length of Ethernet.
pub const FRAME: usize = 60;
/// One second, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// The length of a configuration message, in bytes.
const CONFIG: usize = 35;
/// The length of a topology change notification, in bytes.
const NOTIFICATION: usize = 4;
/// The length of the headers before a message, in bytes: addresses and length field of an 802.3 frame, and LLC header.
const HEADERS: usize = 17;
/// The LLC header: the service access point of the spanning tree protocol as destination and source, then the code for
/// unnumbered information.
const LLC: [u8; 3] = [0x42, 0x42, 0x03];

/// The identifier of a bridge: its priority in the upper 16 bits, its address in the lower 48. The lowest identifier is
/// the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId(pub u64);

impl BridgeId {
    /// Makes the identifier of a bridge with this priority and address.
    pub const fn new(priority: u16, address: EtherAddr) -> BridgeId {
        let [a, b, c, d, e, f] = address.0;
        let [p, q] = priority.to_be_bytes();
        BridgeId(u64::from_be_bytes([p, q, a, b, c, d, e, f]))
    }
}

impl std::fmt::Display for BridgeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p, q, address @ ..] = self.0.to_be_bytes();
        write!(f, "{p:02x}{q:02x}.{}", EtherAddr(address))
    }
}

/// The priority vector, by which bridges compare messages: the root, the cost of the path to the root, and the bridge
/// and port that the message is from. The lowest is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    /// The bridge that the sender considers the root.
    pub root: BridgeId,
    /// The cost of the path from the sender to the root.
    pub cost: u32,
    /// The bridge that sent the message.
    pub bridge: BridgeId,
    /// The identifier of the port on which that bridge sent the message.
    pub port: u16,
}

/// The times that the root sets for all bridges, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a message is valid, counted from when the root sent it.
    pub max_age: i64,
    /// The time between two messages of the root.
    pub hello: i64,
    /// The forward delay: how long a port listens, and then how long it learns, before it forwards.
    pub forward_delay: i64,
}

/// A configuration message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The priority vector of the sender.
    pub priority: Priority,
    /// Whether the root says that the topology is changing.
    pub change: bool,
    /// Whether this message acknowledges a topology change notification.
    pub acknowledged: bool,
    /// The age of the root's information in this message, in nanoseconds.
    pub age: i64,
    /// The times that the root has set.
    pub times: Times,
}

/// A message of the protocol (bridge protocol data unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bpdu {
    /// A configuration message.
    Config(Config),
    /// A topology change notification, which travels to the root.
    Change,
}

/// Converts nanoseconds to a time field of a message, in units of 1/256 second, rounded.
fn ticks(ns: i64) -> [u8; 2] {
    let ticks = (i128::from(ns) * 256 + i128::from(SECOND) / 2) / i128::from(SECOND);
    u16::try_from(ticks.max(0)).unwrap_or(u16::MAX).to_be_bytes()
}

/// Converts a time field of a message to nanoseconds.
fn time(field: [u8; 2]) -> i64 {
    i64::from(u16::from_be_bytes(field)) * SECOND / 256
}

impl Bpdu {
    /// Returns the frame that carries the message.
    pub fn frame(&self, from: EtherAddr) -> [u8; FRAME] {
        let mut frame = [0; FRAME];
        let body = self.body();
        let used: &[u8] = match self {
            Bpdu::Config(_) => &body,
            Bpdu::Change => body.get(..NOTIFICATION).unwrap_or_default(),
        };
        let length = (LLC.len() + used.len()) as u16;
        let parts = [&GROUP.0[..], &from.0, &length.to_be_bytes(), &LLC, used];
        for (place, byte) in frame.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        frame
    }

    /// Returns the message without frame headers. For a notification, only the first four bytes are used.
    fn body(&self) -> [u8; CONFIG] {
        let mut body = [0; CONFIG];
        match self {
            Bpdu::Change => body[3] = 0x80,
            Bpdu::Config(c) => {
                let p = c.priority;
                let flags = [u8::from(c.change) | u8::from(c.acknowledged) << 7];
                let (root, bridge) = (p.root.0.to_be_bytes(), p.bridge.0.to_be_bytes());
                let (cost, port) = (p.cost.to_be_bytes(), p.port.to_be_bytes());
                let times = [c.age, c.times.max_age, c.times.hello, c.times.forward_delay].map(ticks);
                let fields = [&[0; 4][..], &flags, &root, &cost, &bridge, &port];
                let fields = fields.into_iter().flatten().chain(times.iter().flatten());
                for (place, byte) in body.iter_mut().zip(fields) {
                    *place = *byte;
                }
            }
        }
        body
    }

    /// Parses the message in a frame. Returns `None` if the frame has no message, or if a bridge must discard the
    /// message (section 9.3.4), for example because its type is unknown.
    pub fn parse(frame: &[u8]) -> Option<Bpdu> {
        let (headers, rest) = frame.split_first_chunk::<HEADERS>()?;
        let [d0, d1, d2, d3, d4, d5, _, _, _, _, _, _, l0, l1, llc @ ..] = *headers;
        if EtherAddr([d0, d1, d2, d3, d4, d5]) != GROUP || llc != LLC {
            return None;
        }
        // The length field includes the LLC header. Bytes after the message are padding.
        let length = usize::from(u16::from_be_bytes([l0, l1])).checked_sub(LLC.len())?;
        let body = rest.get(..length)?;
        let [0, 0, _, kind, ..] = *body else { return None };
        match kind {
            0 => Config::parse(body).map(Bpdu::Config),
            0x80 => Some(Bpdu::Change),
            _ => None,
        }
    }
}

impl Config {
    fn parse(body: &[u8]) -> Option<Config> {
        let body: &[u8; CONFIG] = body.first_chunk()?;
        let (_, rest) = body.split_first_chunk::<4>()?;
        let (&[flags], rest) = rest.split_first_chunk()?;
        let (root, rest) = rest.split_first_chunk()?;
        let (cost, rest) = rest.split_first_chunk()?;
        let (bridge, rest) = rest.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let &[a0, a1, m0, m1, h0, h1, f0, f1] = rest.first_chunk()?;
        let config = Config {
            priority: Priority {
                root: BridgeId(u64::from_be_bytes(*root)),
                cost: u32::from_be_bytes(*cost),
                bridge: BridgeId(u64::from_be_bytes(*bridge)),
                port: u16::from_be_bytes(*port),
            },
            change: flags & 1 != 0,
            acknowledged: flags & 0x80 != 0,
            age: time([a0, a1]),
            times: Times { max_age: time([m0, m1]), hello: time([h0, h1]), forward_delay: time([f0, f1]) },
        };
        (config.age < config.times.max_age).then_some(config)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::Random;
    use std::process::Command;

    const ME: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 7]);

    fn config() -> Config {
        Config {
            priority: Priority {
                root: BridgeId::new(0x8000, EtherAddr([2, 0, 0, 0, 0, 1])),
                cost: 0x0102_0304,
                bridge: BridgeId::new(0xdead, ME),
                port: 0x8002,
            },
            change: true,
            acknowledged: true,
            age: SECOND * 3 / 2,
            times: Times { max_age: 20 * SECOND, hello: 2 * SECOND, forward_delay: 15 * SECOND },
        }
    }

    /// A configuration message, byte for byte, with the fields of figure 9-1.
    const CONFIG_FRAME: [u8; 52] = [
        0x01, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 7, 0, 38, 0x42, 0x42, 3, // 802.3 and LLC
        0, 0, 0, 0,    // protocol, version, type
        0x81, // flags
        0x80, 0, 2, 0, 0, 0, 0, 1, // root
        1, 2, 3, 4, // cost
        0xde, 0xad, 2, 0, 0, 0, 0, 7, // bridge
        0x80, 2, // port
        1, 0x80, 20, 0, 2, 0, 15, 0, // age, max age, hello time, forward delay
    ];

    #[test]
    fn layout() {
        let frame = Bpdu::Config(config()).frame(ME);
        assert_eq!((&frame[..52], &frame[52..]), (&CONFIG_FRAME[..], &[0; 8][..]));
        let frame = Bpdu::Change.frame(ME);
        assert_eq!(
            frame[..21],
            [1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 7, 0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80]
        );
        assert_eq!((frame[21..].iter().max(), frame.len()), (Some(&0), 60));
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let mut random = Random::new(1, "bpdu");
        for _ in 0..2000 {
            let mut ticks = |most: u64| random.below(most) as i64 * SECOND / 256;
            let age = ticks(0x8000);
            let times =
                Times { max_age: age + 1 + ticks(0x7ff0), hello: ticks(65536), forward_delay: ticks(65536) };
            // Only times of whole ticks are preserved.
            let times = Times { max_age: (times.max_age * 256 / SECOND + 1) * SECOND / 256, ..times };
            let priority = Priority {
                root: BridgeId(random.next_u64()),
                cost: random.next_u32(),
                bridge: BridgeId(random.next_u64()),
                port: random.next_u32() as u16,
            };
            let (change, acknowledged) = (random.below(2) == 0, random.below(2) == 0);
            let sent = Bpdu::Config(Config { priority, change, acknowledged, age, times });
            assert_eq!(Bpdu::parse(&sent.frame(ME)), Some(sent));
        }
        assert_eq!(Bpdu::parse(&Bpdu::Change.frame(ME)), Some(Bpdu::Change));
    }

    #[test]
    fn every_length() {
        let frame = Bpdu::Config(config()).frame(ME);
        for len in 0..=60 {
            assert_eq!(Bpdu::parse(&frame[..len]).is_some(), len >= 52, "{len}");
        }
        let frame = Bpdu::Change.frame(ME);
        for len in 0..=60 {
            assert_eq!(Bpdu::parse(&frame[..len]).is_some(), len >= 21, "{len}");
        }
    }

    #[test]
    fn malformed() {
        // Columns: the offset of the changed byte, its new value, and whether a bridge still acts on the message.
        for (at, value, good) in [
            (0, 0x03, false),
            (5, 1, false),
            (6, 0xff, true),
            (12, 1, false),
            (12, 6, false),
            (13, 37, false),
            (13, 2, false),
            (13, 0, false),
            (13, 46, true),
            (13, 47, false),
            (14, 0xaa, false),
            (16, 0, false),
            (17, 1, false),
            (18, 1, false),
            // Messages of later versions are accepted, messages of unknown types are not (section 9.3.4).
            (19, 2, true),
            (20, 2, false),
            (20, 1, false),
            // Reserved flags are ignored.
            (21, 0x7e, true),
            // The age must be below the maximum age.
            (44, 20, false),
            (44, 19, true),
            (46, 0, false),
            (46, 1, false),
        ] {
            let mut frame = Bpdu::Config(config()).frame(ME);
            frame[at] = value;
            assert_eq!(Bpdu::parse(&frame).is_some(), good, "byte {at}: {value}");
        }
    }

    #[test]
    fn random_bytes() {
        let mut random = Random::new(2, "bpdu");
        for _ in 0..20_000 {
            let mut frame = Bpdu::Config(config()).frame(ME).to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(60) as usize;
                frame[at] = random.next_u64() as u8;
            }
            frame.truncate(random.below(61) as usize);
            if let Some(Bpdu::Config(c)) = Bpdu::parse(&frame) {
                assert!(c.age < c.times.max_age);
            }
        }
    }

    #[test]
    fn times_are_rounded_and_bounded() {
        for (ns, want) in
            [(0, 0), (-5, 0), (SECOND, 256), (SECOND / 512, 1), (SECOND / 513, 0), (i64::MAX, 0xffff)]
        {
            assert_eq!(u16::from_be_bytes(ticks(ns)), want, "{ns}");
        }
        assert_eq!(BridgeId::new(0x8000, ME).to_string(), "8000.02-00-00-00-00-07");
    }

    /// Checks that tshark reads the same fields in our frames.
    #[test]
    fn tshark_reads_the_same() {
        let file = tempfile::Builder::new().suffix(".pcap").tempfile().unwrap();
        let mut bytes: Vec<u8> =
            [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0xffff, 1].iter().flat_map(|w| w.to_ne_bytes()).collect();
        for bpdu in [Bpdu::Config(config()), Bpdu::Change] {
            bytes.extend([0u32, 0, 60, 60].iter().flat_map(|w| w.to_ne_bytes()));
            bytes.extend(bpdu.frame(ME));
        }
        std::fs::write(file.path(), bytes).unwrap();
        let fields = [
            "type",
            "flags.tc",
            "flags.tcack",
            "root.prio",
            "root.hw",
            "root.cost",
            "bridge.prio",
            "bridge.hw",
            "port",
            "msg_age",
            "max_age",
            "hello",
            "forward",
        ];
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(file.path()).args(["-T", "fields", "-E", "separator=,"]);
        for field in fields {
            tshark.arg("-e").arg(format!("stp.{field}"));
        }
        let Ok(out) = tshark.output() else {
            println!("SKIP: no tshark");
            return;
        };
        let text = String::from_utf8(out.stdout).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text} {}", String::from_utf8_lossy(&out.stderr));
        let said: Vec<_> = lines[0].split(',').collect();
        assert_eq!(said[0], "0x00", "{text}");
        assert!(said[1..3].iter().all(|f| ["1", "True"].contains(f)), "{text}");
        let want = [
            "32768",
            "02:00:00:00:00:01",
            "16909060",
            "53248",
            "02:00:00:00:00:07",
            "0x8002",
            "1.5",
            "20",
            "2",
            "15",
        ];
        assert_eq!(said[3..], want, "{text}");
        assert!(lines[1].starts_with("0x80,"), "{text}");
    }
}
