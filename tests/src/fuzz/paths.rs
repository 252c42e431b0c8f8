// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target that sends frames through compiled paths and through elements that run themselves.

use super::elements::{frames, source};
use super::{at_most, load};
use castanet_element::build::of_router;
use castanet_element::prelude::*;
use castanet_jit::When;
use castanet_runtime::{Given, Options};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Adds up a hash of each packet: its data, annotations and headers. The order of packets does not matter.
#[derive(Class)]
#[class(name = "Digest", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, build, handlers)]
pub struct Digest {
    args: DigestArgs,
    sum: u64,
}

/// Digest has no arguments.
#[derive(Args)]
pub struct DigestArgs {}

impl Build for Digest {
    fn build(args: DigestArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Digest { args, sum: 0 })
    }
}

impl Action for Digest {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let mut hash = DefaultHasher::new();
        (p.data(), p.annotations(), p.packet_type() as u8).hash(&mut hash);
        (p.mac_offset(), p.network_offset(), p.transport_offset()).hash(&mut hash);
        self.sum = self.sum.wrapping_add(hash.finish());
        Verdict::Next
    }
}

#[handlers]
impl Digest {
    /// The sum.
    #[read(merge = sum)]
    fn sum(&self) -> Counted {
        Counted(self.sum)
    }
}

/// The elements between the source and the ends, and the number of their ends. Each end is an output of `end`.
const PATHS: [(&str, usize); 5] = [
    (
        "-> kind :: Classifier(12/0806 20/0001, 12/0800, 12/86dd%ff0f, -); kind [0] -> [0] end; kind [2] -> [1] end; kind [3] -> [2] end;
         kind [1] -> Paint(2) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/8) -> GetIPAddress(16)
         -> routes :: StaticIPLookup(10.0.0.0/8 0, 10.1.0.0/16 10.0.0.9 1, 0.0.0.0/0 10.0.0.8 1);
         routes [0] -> [3] end; routes [1] -> DropBroadcasts -> paint :: PaintTee(2) -> options :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1)
         -> ttl :: DecIPTTL -> cut :: IPFragmenter(100) -> [4] end;
         paint [1] -> [5] end; options [1] -> [6] end; ttl [1] -> [7] end; cut [1] -> [8] end;",
        9,
    ),
    (
        "-> Strip(14) -> check :: CheckIPHeader(VERBOSE true) -> filter :: IPFilter(1 tcp dst port 80, deny src net 10.0.0.0/9,
         2 udp or icmp type 8, 0 ip frag, deny ip ttl < 3, 1 ip dscp > 7, allow all);
         check [1] -> [0] end; filter [0] -> [1] end; filter [1] -> [2] end; filter [2] -> [3] end;",
        4,
    ),
    (
        "-> CheckIPHeader(14, CHECKSUM false) -> class :: IPClassifier(tcp syn, src port 53, icmp, ip vers 4, -);
         class [0] -> SetIPDSCP(9) -> MarkIPCE -> [0] end; class [1] -> Unstrip(2) -> [1] end; class [2] -> SetIPECN(1) -> [2] end;
         class [3] -> StoreIPAddress(1.2.3.4, src) -> [3] end; class [4] -> [4] end;",
        5,
    ),
    (
        "-> host :: HostEtherFilter(2:0:0:0:0:0, DROP_OWN true) -> EtherMirror -> Truncate(60) -> n :: Counter -> VLANDecap -> [0] end;
         host [1] -> CheckLength(40) -> StoreData(3, abc) -> [1] end;",
        2,
    ),
    (
        "-> MarkIPHeader(14) -> IPMirror -> paint :: CheckPaint(0) -> SetAnnoByte(9, 4) -> MarkEtherHeader(0) -> [0] end;
         paint [1] -> [1] end;",
        2,
    ),
];

/// Compilers whose code is ready before the first packet.
fn compilers() -> Given {
    of_router(castanet_jit::path_compiler(When::AtOnce))
}

/// Runs a configuration. Returns the digests and numbers of the packets at its ends, and the drops.
fn run(text: &str, ends: usize, given: Given) -> BTreeMap<String, u64> {
    let (graph, sources, _) = load::graph(text);
    let options = Options { batch: 32, given, ..load::options() };
    let mut router = match load::router_with(graph, &sources, options) {
        Ok(r) => r,
        Err(e) => panic!("{text}\n{e}"),
    };
    load::run(&mut router);
    assert_eq!(router.waiting(), 0, "{text}");
    let mut seen = BTreeMap::new();
    for end in 0..ends {
        for handler in ["digest.sum", "count.count", "count.byte_count"] {
            let (element, name) = handler.split_once('.').unwrap_or_default();
            let element = router.find(&format!("{element}{end}"));
            let value = router.read(element, name, "").ok().and_then(|v| v.trim().parse().ok());
            seen.insert(format!("{handler} of end {end}"), value.unwrap_or(u64::MAX));
        }
    }
    for ((e, reason), n) in router.drops() {
        seen.insert(format!("drops of element {e}, {}", reason.name()), n);
    }
    seen
}

/// Sends frames along a path. The first byte of the input selects the path. Frames follow.
pub fn paths(data: &[u8]) {
    let Some((&which, rest)) = at_most(data, 8192).split_first() else { return };
    let Some(&(path, ends)) = PATHS.get(usize::from(which) % PATHS.len()) else { return };
    let frames = frames(rest, 1).pop().unwrap_or_default();
    // Several frames in a turn, so that they move as a batch.
    let source = source(&frames).replace("BURST 3", "BURST 32");
    let all: String = (0..ends)
        .map(|i| format!("end [{i}] -> digest{i} :: Digest -> count{i} :: Counter -> Discard;\n"))
        .collect();
    let outputs: String = (0..ends).map(|i| format!("input [{i}] -> [{i}] output;")).collect();
    let text = format!("elementclass End {{ {outputs} }} end :: End; {source} {path}\n{all}Fuse(4096);");
    let plain = run(&text, ends, Given::default());
    let compiled = run(&text, ends, compilers());
    assert_eq!(plain, compiled, "{text}");
}
