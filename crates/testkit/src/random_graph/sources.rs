// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of random configurations: every class that makes packets without a device.

use super::Maker;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How packets leave a source.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Push,
    Pull,
    Either,
}

/// Returns the path of a capture of 50 frames of different lengths, 100 us apart.
fn capture() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        // Little-endian, version 2.4, microseconds, Ethernet.
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        for word in [0_u32, 0, 65_535, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for n in 0..50_u32 {
            let length = 14 + n * 7 % 60;
            for word in [1_000_000_000, n * 100, length, length] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend((0..length).map(|i| (i * n) as u8));
        }
        // Beside the test program, so that it is removed with the target folder.
        let path = std::env::current_exe().unwrap().with_file_name("random_sources.pcap");
        // Several test processes write this file at the same time, with the same bytes: rename makes each write atomic.
        let whole = path.with_extension(std::process::id().to_string());
        std::fs::write(&whole, bytes).unwrap();
        std::fs::rename(&whole, &path).unwrap();
        path
    })
}

/// A summary of `n` packets.
fn summary(n: usize) -> String {
    (0..n).fold("!data ip_src ip_dst ip_proto ip_len\n".into(), |text, i| {
        format!("{text}1.0.0.{} 2.0.0.2 {} {}\n", i % 256, ["T", "U", "I"][i % 3], 40 + i)
    })
}

/// The path of a file with lines in the format of tcpdump.
fn lines() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conf/traces/tcpdump.txt")
}

/// The classes of sources.
const CLASSES: [&str; 12] = [
    "InfiniteSource",
    "RandomSource",
    "RatedSource",
    "TimedSource",
    "MemSource",
    "FromDump",
    "FromIPSummaryDump",
    "FromTcpdump",
    "FastUDPSource",
    "ICMPPingSource",
    "ICMPRouterAdvertiser",
    "ARPFaker",
];

impl Maker {
    /// Adds a source of a random class, and a Stamp that numbers its packets.
    pub(super) fn source(&mut self, id: usize) {
        let (n, burst, k) = (self.below(60), 1 + self.below(40), 1 + self.below(9));
        let class = CLASSES[self.below(CLASSES.len())];
        let (arguments, way) = match class {
            "InfiniteSource" => (format!("DATA \"data\", LIMIT {n}, BURST {burst}"), Way::Either),
            "RandomSource" => (format!("{}, {n}, {burst}", 20 + k), Way::Either),
            "RatedSource" => (format!("RATE {}, LIMIT {n}", 500 * k), Way::Either),
            "TimedSource" => (format!("0.00{k}, LIMIT {n}"), Way::Push),
            "MemSource" => (format!("\"first frame\" \"another\", LIMIT {n}, BURST {burst}"), Way::Push),
            "FromDump" => (capture().display().to_string(), Way::Either),
            "FromIPSummaryDump" => (format!("DATA \"{}\"", summary(n)), Way::Either),
            "FromTcpdump" => (lines().display().to_string(), Way::Either),
            "FastUDPSource" => {
                let ends = "2:0:0:0:0:1, 1.0.0.1, 1234, 2:0:0:0:0:2, 2.0.0.2, 5678";
                (format!("{}, {}, 60, {ends}", 500 * k, n.max(1)), Way::Pull)
            }
            "ICMPPingSource" => (format!("1.0.0.1, 2.0.0.2, INTERVAL 0.00{k}, LIMIT {n}"), Way::Push),
            "ICMPRouterAdvertiser" => (format!("1.0.0.1/24, MAX_INTERVAL {}", 100 * k), Way::Push),
            "ARPFaker" => ("1.0.0.9, 2:0:0:0:0:9, 1.0.0.1, 2:0:0:0:0:1".into(), Way::Push),
            _ => panic!("no arguments for {class}"),
        };
        let text = format!("{class}({arguments})");
        let pulls = way == Way::Pull || way == Way::Either && self.below(3) == 0;
        let source = self.add(text, 0, 1, false);
        let stamp = self.add(format!("Stamp({id})"), 1, 1, pulls);
        self.connect((source, 0), stamp, 0);
        if pulls {
            self.pull.push((stamp, 0));
        } else {
            self.push.push((stamp, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CLASSES;
    use castanet_classes::Registry;
    use castanet_element::spec::LedgerRole;

    #[test]
    fn the_list_of_sources_is_complete() {
        let registry = Registry::new();
        let enters = registry.classes().into_iter().filter(|c| c.ledger_role.contains(LedgerRole::ENTERS));
        // Devices, sockets and TCP are left out, because they need another system that answers them.
        let alone = |module: &str| !module.contains("::device::") && !module.starts_with("castanet_tcp");
        let mut names: Vec<_> = enters.filter(|c| alone(c.module)).map(|c| c.name).collect();
        let mut listed = CLASSES.to_vec();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }
}
