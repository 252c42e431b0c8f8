// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random elements of the classes that can run in the kernel, as parts of random configurations.

use crate::frames::Random;

/// An element, as random configurations contain it.
pub struct Piece {
    /// The class and the arguments.
    pub text: String,
    /// The numbers of inputs and outputs.
    pub ports: (usize, usize),
    /// Handlers that may be written while packets flow, with values.
    pub writes: Vec<String>,
}

/// Makes a piece of a class.
type Make = fn(&mut Random) -> Piece;

fn piece(text: String, outputs: usize) -> Piece {
    Piece { text, ports: (1, outputs), writes: Vec::new() }
}

impl Piece {
    fn write(mut self, handler: &str, values: &[&str]) -> Piece {
        self.writes.extend(values.iter().map(|v| format!("{handler} {v}")));
        self
    }
}

fn upto(r: &mut Random, most: usize) -> usize {
    1 + r.below(most as u64) as usize
}
fn flag(r: &mut Random) -> bool {
    r.one_in(2)
}
fn ether(r: &mut Random) -> &'static str {
    r.of(&["2:0:0:0:0:0", "2:0:0:0:0:1", "2:0:0:0:1:2", "ff:ff:ff:ff:ff:ff", "1:0:5e:0:0:1", "7:8:9:a:b:c"])
}
fn ip(r: &mut Random) -> &'static str {
    r.of(&["10.0.0.2", "10.0.1.2", "10.0.0.1", "10.0.1.9", "255.255.255.255", "1.2.3.4"])
}
/// An annotation of `size` bytes.
fn anno(r: &mut Random, size: u64) -> u64 {
    let some = r.of(&[0, 3, 9, 17, 20, 22, 26, 29, 30, 40]);
    let any = r.below(49 - size);
    if flag(r) { some } else { any }
}
fn colour(r: &mut Random) -> u64 {
    r.of(&[0, 0, 1, 2, 10, 255])
}
/// An offset, mostly that of a field.
fn offset(r: &mut Random) -> u64 {
    let any = r.below(80);
    r.of(&[0, 6, 8, 12, 14, 16, 26, 30, 34, any, any])
}
fn some_of(r: &mut Random, list: &[&str], most: usize) -> Vec<String> {
    (0..upto(r, most)).map(|_| r.of(list).to_string()).collect()
}
fn tag(r: &mut Random) -> String {
    let kind = r.of(&["ANNO", "VLAN_TCI ANNO, VLAN_PCP 3", "VLAN_ID 7", "VLAN_ID 4095, VLAN_PCP 5"]);
    let native = r.of(&["", "", ", NATIVE_VLAN 7", ", NATIVE_VLAN -1"]);
    format!("{kind}{native}")
}
fn look_up(r: &mut Random, class: &str) -> Piece {
    let outputs = upto(r, 3);
    let mut routes: Vec<String> = (0..upto(r, 4))
        .map(|_| {
            let net = r.of(&[
                "10.0.0.0/24",
                "10.0.1.0/24",
                "10.0.0.2/32",
                "10.0.0.0/8",
                "0.0.0.0/0",
                "224.0.0.0/4",
            ]);
            let gateway = r.of(&["", " 9.9.9.9", " 10.0.1.2"]);
            format!("{net}{gateway} {}", r.below(outputs as u64))
        })
        .collect();
    if r.one_in(3) {
        // Too many for comparisons.
        routes.extend((0..40).map(|i| format!("10.{}.0.0/{} {}", 2 + i, 16 + i % 5, i % outputs)));
    }
    let made = piece(format!("{class}({})", routes.join(", ")), outputs);
    if class == "StaticIPLookup" {
        return made;
    }
    made.write("set", &["10.0.1.2/32 3.3.3.3 0", "10.0.0.0/24 0", "0.0.0.0/0 10.0.1.9 0"])
        .write("add", &["10.0.1.0/28 0"])
}

/// The classes, with functions that make an element.
pub const PIECES: &[(&str, Make)] = &[
    ("Strip", |r| {
        let n = 1 + r.below(20);
        piece(format!("Strip({})", r.of(&[14, 14, 4, 20, n, n])), 1)
    }),
    ("Unstrip", |r| {
        let n = 1 + r.below(40);
        piece(format!("Unstrip({})", r.of(&[14, 14, 4, 20, n])), 1)
    }),
    ("Align", |r| piece(format!("Align(4, {})", r.below(4)), 1)),
    ("CheckLength", |r| {
        let text = format!("CheckLength({}, EXTRA_LENGTH {})", r.of(&[20, 46, 60, 100, 1000]), r.one_in(4));
        piece(text, upto(r, 2)).write("length", &["60", "0", "70000"])
    }),
    ("CheckPaint", |r| {
        let text = format!("CheckPaint({}, {})", colour(r), anno(r, 1));
        piece(text, upto(r, 2)).write("color", &["1", "0"])
    }),
    ("Paint", |r| piece(format!("Paint({}, {})", colour(r), anno(r, 1)), 1).write("color", &["1", "2"])),
    ("PaintTee", |r| {
        piece(format!("PaintTee({}, {})", colour(r), anno(r, 1)), 2).write("color", &["1", "0"])
    }),
    ("PaintSwitch", |r| piece(format!("PaintSwitch({})", anno(r, 1)), upto(r, 3))),
    ("Switch", |r| {
        let n = upto(r, 3);
        piece(format!("Switch({})", r.below(n as u64 + 1) as i64 - 1), n)
            .write("switch", &["0", "1", "-1", "9"])
    }),
    ("StaticSwitch", |r| {
        let n = upto(r, 3);
        piece(format!("StaticSwitch({})", r.below(4 * n as u64).saturating_sub(3 * n as u64)), n)
    }),
    ("HashSwitch", |r| piece(format!("HashSwitch({}, {})", offset(r), 1 + r.below(20)), upto(r, 4))),
    ("RoundRobinSwitch", |r| piece("RoundRobinSwitch".into(), upto(r, 3))),
    ("MarkMACHeader", |r| {
        piece(format!("MarkMACHeader({}, {})", r.of(&[0, 0, 4, 14, 40]), r.of(&[0, 14, 18])), 1)
    }),
    ("MarkIPHeader", |r| piece(format!("MarkIPHeader({})", r.of(&[0, 0, 14, 14, 18, 4])), 1)),
    ("Null", |_| piece("Null".into(), 1)),
    ("PushNull", |_| piece("PushNull".into(), 1)),
    ("Counter", |_| piece("Counter".into(), 1).write("reset", &[""])),
    ("AverageCounter", |_| piece("AverageCounter".into(), 1).write("reset", &[""])),
    ("CompleteOffload", |_| piece("CompleteOffload".into(), 1)),
    ("Meter", |r| {
        let outputs = 1 + upto(r, 3);
        let class = r.of(&[("Meter", 200), ("BandwidthMeter", 15_000)]);
        let rates: Vec<String> = (1..outputs as u64).map(|i| (i * class.1).to_string()).collect();
        piece(format!("{}({})", class.0, rates.join(", ")), outputs)
    }),
    ("EtherEncap", |r| {
        let text = format!("EtherEncap({}, {}, {})", r.of(&["0x0800", "0x88b5"]), ether(r), ether(r));
        piece(text, 1).write("dst", &["1:1:1:1:1:1"]).write("ethertype", &["0x0806"])
    }),
    ("EtherMirror", |_| piece("EtherMirror".into(), 1)),
    ("EtherRewrite", |r| {
        piece(format!("EtherRewrite({}, {})", ether(r), ether(r)), 1).write("src", &["1:1:1:1:1:1"])
    }),
    ("EtherVLANEncap", |r| {
        piece(
            format!(
                "EtherVLANEncap({}, {}, {}, {})",
                r.of(&["0x0800", "0x0806"]),
                ether(r),
                ether(r),
                tag(r)
            ),
            1,
        )
    }),
    ("VLANEncap", |r| piece(format!("VLANEncap({}{})", tag(r), r.of(&["", "", ", ETHERTYPE 0x88a8"])), 1)),
    ("VLANDecap", |r| piece(format!("VLANDecap({})", r.of(&["", "false", "ETHERTYPE 0x0800"])), 1)),
    ("SetVLANAnno", |r| {
        piece(format!("SetVLANAnno({})", r.of(&["0x1fff", "VLAN_ID 7, VLAN_PCP 2", "0"])), 1)
    }),
    ("StripEtherVLANHeader", |r| {
        piece(format!("StripEtherVLANHeader({})", r.of(&["", "-1", "7"])), upto(r, 2))
    }),
    ("GetEtherAddress", |r| {
        let any = offset(r).to_string();
        let text = format!("GetEtherAddress({}, {})", anno(r, 6), r.of(&["src", "dst", any.as_str()]));
        piece(text, upto(r, 2))
    }),
    ("SetEtherAddress", |r| {
        piece(format!("SetEtherAddress({}, {})", ether(r), anno(r, 6)), 1).write("addr", &["1:1:1:1:1:1"])
    }),
    ("StoreEtherAddress", |r| {
        let any = offset(r).to_string();
        let to = r.of(&["src", "dst", any.as_str()]);
        let text = match flag(r) {
            true => format!("StoreEtherAddress({}, {to})", ether(r)),
            false => format!("StoreEtherAddress(OFFSET {to}, ANNO {})", anno(r, 6)),
        };
        piece(text, upto(r, 2))
    }),
    ("HostEtherFilter", |r| {
        let text = format!(
            "HostEtherFilter({}, {}, {}, OFFSET {})",
            ether(r),
            flag(r),
            flag(r),
            r.of(&[0, 0, 0, 5])
        );
        piece(text, upto(r, 2)).write("ether", &["2:0:0:0:0:1"])
    }),
    ("StripToNetworkHeader", |_| piece("StripToNetworkHeader".into(), 1)),
    ("CheckIPHeader", |r| {
        let arguments = [
            "",
            "",
            "14",
            "14",
            "INTERFACES 10.0.0.1/24 10.0.1.1/24",
            "14, VERBOSE true",
            "0, DETAILS true",
            "BADSRC 10.0.0.2 10.0.0.255, GOODDST 10.0.1.2",
            "CHECKSUM false",
            "18",
        ];
        piece(format!("CheckIPHeader({})", r.of(&arguments)), upto(r, 2))
    }),
    ("DecIPTTL", |r| {
        let text = format!("DecIPTTL(ACTIVE {}, MULTICAST {})", !r.one_in(5), flag(r));
        piece(text, upto(r, 2)).write("active", &["true", "false"])
    }),
    ("StaticIPLookup", |r| look_up(r, "StaticIPLookup")),
    ("RadixIPLookup", |r| look_up(r, "RadixIPLookup")),
    ("DirectIPLookup", |r| look_up(r, "DirectIPLookup")),
    ("LinearIPLookup", |r| look_up(r, "LinearIPLookup")),
    ("DropBroadcasts", |r| piece("DropBroadcasts".into(), upto(r, 2))),
    ("FixIPSrc", |r| piece(format!("FixIPSrc({})", ip(r)), 1)),
    ("GetIPAddress", |r| {
        let text = match flag(r) {
            true => format!("GetIPAddress({}, {})", offset(r), anno(r, 4)),
            false => format!("GetIPAddress(IP {}, ANNO {})", r.of(&["src", "dst"]), anno(r, 4)),
        };
        piece(text, 1)
    }),
    ("SetIPAddress", |r| {
        piece(format!("SetIPAddress({}, ANNO {})", ip(r), anno(r, 4)), 1).write("addr", &["10.0.0.2"])
    }),
    ("StoreIPAddress", |r| {
        let any = offset(r).to_string();
        let to = r.of(&["src", "dst", any.as_str()]);
        let text = match r.one_in(3) {
            true => format!("StoreIPAddress({to})"),
            false => format!("StoreIPAddress({}, {to})", ip(r)),
        };
        piece(text, upto(r, 2))
    }),
    ("IPFragmenter", |r| {
        let text = format!("IPFragmenter({}, {}, {})", r.of(&[60, 100, 576, 1500]), flag(r), r.one_in(4));
        piece(text, upto(r, 2))
    }),
    ("IPGWOptions", |r| {
        let more = r.of(&[
            "",
            ", OTHERADDRS 10.0.1.1",
            ", SOURCE_ROUTE drop",
            ", OTHERADDRS 10.0.1.1, SOURCE_ROUTE follow",
        ]);
        piece(format!("IPGWOptions(10.0.0.1{more})"), upto(r, 3))
    }),
    ("IPInputCombo", |r| {
        let more = r.of(&["", ", 10.0.1.2", ", INTERFACES 10.0.0.1/24", ", VERBOSE true"]);
        piece(format!("IPInputCombo({}{more})", colour(r)), 1)
    }),
    ("IPOutputCombo", |r| {
        let (mtu, cut) = (r.of(&[60, 100, 1500]), flag(r));
        let more = if cut { ", FRAGMENT true" } else { "" };
        piece(format!("IPOutputCombo({}, 10.0.0.1, {mtu}{more})", colour(r)), 5 + usize::from(cut))
    }),
    ("IPMirror", |r| piece(format!("IPMirror({})", flag(r)), 1)),
    ("MarkIPCE", |r| piece(format!("MarkIPCE({})", flag(r)), 1)),
    ("SetIPChecksum", |_| piece("SetIPChecksum".into(), 1)),
    ("SetIPDSCP", |r| piece(format!("SetIPDSCP({})", r.below(64)), 1).write("dscp", &["3"])),
    ("SetIPECN", |r| {
        piece(format!("SetIPECN({})", r.of(&["no", "ect1", "ect2", "ce"])), 1).write("ecn", &["no"])
    }),
    ("Classifier", |r| {
        let list = [
            "12/0800",
            "12/0806",
            "12/0806 20/0001",
            "0/02",
            "0/ffffffffffff",
            "14/45",
            "9/06",
            "23/06",
            "30/0a0001",
            "!12/0800",
            "16/00%80",
            "1/?3 6/02",
            "40/0050",
            "-",
        ];
        let mut all = some_of(r, &list, 4);
        if flag(r) {
            all.push("-".into());
        }
        piece(format!("Classifier({})", all.join(", ")), all.len())
    }),
    ("IPClassifier", |r| {
        let list = [
            "tcp",
            "udp",
            "icmp",
            "src net 10.0.0.0/24",
            "dst host 10.0.1.2",
            "tcp syn",
            "tcp dst port 80",
            "udp src port 53",
            "ip frag",
            "ip ttl 1",
            "ip dscp 3",
            "ip hl 5",
            "icmp type echo",
            "dst net 10.0.1.0/24 and not tcp",
            "ip unfrag",
            "tcp opt ack or udp dst port < 1024",
            "-",
        ];
        let mut all = some_of(r, &list, 4);
        if flag(r) {
            all.push("-".into());
        }
        piece(format!("IPClassifier({})", all.join(", ")), all.len())
    }),
    ("IPFilter", |r| {
        let list = [
            "allow tcp",
            "deny udp",
            "1 icmp",
            "drop src 10.0.0.2",
            "allow dst port 80",
            "deny ip frag",
            "allow all",
        ];
        let all = some_of(r, &list, 5);
        piece(format!("IPFilter({})", all.join(", ")), 2)
    }),
    ("ARPQuerier", |r| {
        let net = r.of(&["10.0.1.1/24, 2:0:0:0:0:1", "10.0.0.1/24, 2:0:0:0:0:0"]);
        let values = ["10.0.1.2 2:1:1:1:1:1", "10.0.0.2 2:3:3:3:3:3", "10.0.1.2 2:2:2:2:2:2"];
        let made =
            piece(format!("ARPQuerier({net})"), upto(r, 3)).write("insert", &values).write("clear", &[""]);
        Piece { ports: (2, made.ports.1), ..made }
    }),
    ("IPRewriter", |r| {
        let list = [
            "IPRewriter(pattern 9.9.9.9 1024-1039# - - 0 1, drop)",
            "IPRewriter(pattern 9.9.9.9 1024-1039# - - 0 1, pass 1, CAPACITY 4)",
            "IPRewriter(keep 1 0, keep 0 0)",
            "TCPRewriter(pattern 9.9.9.9 1024-1039# - - 0 1, pass 1)",
            "UDPRewriter(pattern 9.9.9.9 1024-1039# - - 0 1, drop, REPLY_ANNO 20)",
            "IPAddrRewriter(pattern 9.9.9.9-9.9.9.20# - 0 1, drop)",
            "IPAddrPairRewriter(pattern 9.9.9.9 10.0.1.9 0 1, pass 1)",
            "ICMPPingRewriter(pattern 9.9.9.9 1024-1039# - - 0 1, drop)",
        ];
        Piece { ports: (2, 2), ..piece(r.of(&list).into(), 2).write("clear", &[""]) }
    }),
    ("EtherSwitch", |r| {
        let n = 1 + upto(r, 2);
        Piece { ports: (n, n), ..piece("EtherSwitch".into(), n) }
    }),
    ("Suppressor", |_| piece("Suppressor".into(), 1)),
    // Classes that do not run in the kernel: packets come up there, and go on at user level.
    ("Tee", |_| piece("Tee".into(), 2)),
    ("SetCRC32", |_| piece("SetCRC32".into(), 1)),
];

/// The classes of the project that declare the flag `kernel`, by their files. ToHost declares it only to say why it cannot.
pub fn classes_with_code() -> Vec<String> {
    fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let flags = |line: &str| {
                let words = line
                    .strip_prefix("#[class(")
                    .map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'));
                words.is_some_and(|mut words| words.any(|w| w == "kernel"))
            };
            let name = text.split_once("name = \"").and_then(|(_, rest)| Some(rest.split_once('"')?.0));
            if let Some(name) = name.filter(|n| text.lines().any(flags) && *n != "ToHost") {
                found.push(name.to_string());
            }
        }
    }
    let mut found = Vec::new();
    visit(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../elements/src")), &mut found);
    found
}
