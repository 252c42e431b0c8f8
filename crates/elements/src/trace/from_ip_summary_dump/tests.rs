// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::Kit;
use castanet_lang::args;
use castanet_spec::anno;

const S: i64 = 1_000_000_000;

fn kit(dump: &str, more: &str) -> Kit<FromIpSummaryDump> {
    Kit::new(&format!("DATA {}{more}", args::quote(dump))).unwrap()
}
/// Runs the task until it sleeps. Returns the packets.
fn run(kit: &mut Kit<FromIpSummaryDump>) -> Vec<Packet> {
    let mut out = Vec::new();
    loop {
        let (turn, packets) = kit.task();
        out.extend(packets.into_iter().map(|p| p.1));
        if turn == Turn::Sleep {
            return out;
        }
    }
}
fn ids(packets: &[Packet]) -> Vec<u16> {
    packets.iter().map(|p| p.ip_header().map_or(0, |h| u16::from_be_bytes([h[4], h[5]]))).collect()
}

#[test]
fn packets_have_what_the_dump_tells() {
    let dump = "!data timestamp first_ts count link aggregate ip_dst ip_len eth_src\n\
                1.5 1.25 3 < 9 1.2.3.4 100 2-0-0-0-0-1\n";
    let out = run(&mut kit(dump, ""));
    let p = &out[0];
    assert_eq!((p.timestamp(), p.len(), p.anno_u32(anno::EXTRA_LENGTH)), (1_500_000_000, 54, 60));
    assert_eq!(i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP)), 1_250_000_000);
    assert_eq!((p.anno_u32(anno::EXTRA_PACKETS), p.paint(), p.anno_u32(anno::AGGREGATE)), (2, 1, 9));
    assert_eq!(
        (p.dst_addr(), p.mac_offset(), p.network_offset(), p.transport_offset()),
        ([1, 2, 3, 4].into(), Some(0), Some(14), Some(34))
    );
    let header = p.ip_header().unwrap();
    assert_eq!((header[8], header[9], &header[10..12]), (100, 6, &[0, 0][..]), "TTL 100, TCP, no checksum");
    let out = run(&mut kit(dump, ", CHECKSUM true"));
    assert_eq!((out[0].len(), out[0].anno_u32(anno::EXTRA_LENGTH)), (114, 0));
    assert_eq!(castanet_wire::checksum::sum(&out[0].data()[14..34]), 0xffff);
}

#[test]
fn what_the_configuration_says() {
    let fields = |p: &Packet| {
        (p.ip_header().unwrap()[9], p.data()[12..16].to_vec(), p.transport().unwrap()[..4].to_vec())
    };
    let flow = "FLOWID 1.0.0.1 10 2.0.0.2 20 U, FIELDS ip_id";
    let out = run(&mut kit("5\n", &format!(", {flow}")));
    assert_eq!(fields(&out[0]), (17, vec![1, 0, 0, 1], vec![0, 10, 0, 20]));
    let out = run(&mut kit("5\n", ", PROTO UDP, DEFAULT_CONTENTS ip_id, DEFAULT_FLOWID 1.0.0.1 - - 20"));
    assert_eq!(fields(&out[0]), (17, vec![1, 0, 0, 1], vec![0, 0, 0, 20]));
    let fails = |c: &str| Kit::<FromIpSummaryDump>::new(c).err().unwrap().join(" ");
    assert_eq!(fails(""), "FILENAME or DATA: required argument missing");
    assert_eq!(fails("x, DATA y"), "specify at most one of FILENAME and DATA");
    assert_eq!(fails("DATA y, FIELDS foo"), "unknown content type 'foo'");
    assert_eq!(fails("DATA y, FIELDS ip_sr"), "unknown content type 'ip_sr', did you mean 'ip_src'?");
    assert!(
        fails("DATA y, FLOWID 1.0.0.1").contains("FLOWID") && fails("DATA y, PROTO foo").contains("PROTO")
    );
    assert_eq!(fails("/nonexistent/x"), "/nonexistent/x: No such file or directory");
    let mut k = Kit::<FromIpSummaryDump>::new("/nonexistent/x, ALLOW_NONEXISTENT true, STOP true").unwrap();
    assert_eq!((run(&mut k).len(), k.stops()), (0, 1));
}

#[test]
fn every_limit_gives_the_same_and_the_end_comes_last() {
    let dump = "!data ip_id\n1\n2\n# no\n3\n!bad\n4\n5\n";
    for limit in [1, 2, 3, 32] {
        let mut k = kit(dump, ", STOP true").limit(limit);
        let mut out = Vec::new();
        while out.len() < 5 {
            let (turn, packets) = k.task();
            assert!(packets.len() <= limit && turn == Turn::Again && k.stops() == 0);
            out.extend(packets.into_iter().map(|p| p.1));
        }
        assert_eq!((ids(&out), k.task().0, k.stops()), (vec![1, 2, 3, 4, 5], Turn::Sleep, 1));
        assert_eq!((k.task().0, k.stops()), (Turn::Sleep, 1), "once");
    }
    let mut k = kit(dump, ", STOP true");
    assert_eq!((ids(&k.pull(0, 2)), ids(&k.pull(0, 9)), k.stops()), (vec![1, 2], vec![3, 4, 5], 0));
    assert_eq!((k.pull(0, 9).len(), k.stops(), k.note(Capability::EmptyNotifier)), (0, 1, false));
}

#[test]
fn problems() {
    let mut k = kit("!data ip_id\n1\nx\ny\n-\n70000 5\n3\n", "");
    assert_eq!(ids(&run(&mut k)), [1, 0, 3]);
    assert_eq!(k.messages(), ["<data>:3: packet parse error"]);
    assert_eq!(
        ["bad_lines", "bad_fields", "encap", "filesize"].map(|h| k.read(h).unwrap()),
        ["3", "3", "IP", "-"]
    );
    let mut k = kit("1 2\n", "");
    assert_eq!(run(&mut k).len(), 0);
    assert_eq!(
        k.messages(),
        [
            "<data>:0: warning: missing banner line; is this an IP summary dump?",
            "<data>:1: no '!data' provided"
        ]
    );
    // Very many lines without packets take more than one turn.
    let mut k = kit(&"#\n".repeat(3000), "");
    assert_eq!((k.task().0, k.task().0, k.task().0), (Turn::Again, Turn::Again, Turn::Sleep));
    let mut k = kit("!data ip_id\n!binary\n\0\0\0\x01", "");
    assert_eq!((run(&mut k).len(), k.messages().len()), (0, 1));
    assert!(k.cleanup().is_err());
}

#[test]
fn timing() {
    let mut k = kit("!data timestamp ip_id\n5 1\n7 2\n7 3\n", ", TIMING true");
    assert_eq!(ids(&run(&mut k)), [1]);
    // Simulated time advances a little whenever it is read.
    assert!((2 * S..2 * S + 10).contains(&k.next_timer().unwrap()));
    k.expire();
    assert!(k.woken());
    assert_eq!(ids(&run(&mut k)), [2, 3]);
}

#[test]
fn several_packets_of_a_record() {
    let dump = "!data first_ts ts count ip_len ip_id\n1 3 3 1000 9\n- 5 2 100 8\n- 6 0 40 7\n";
    for limit in [1, 2, 32] {
        let out = run(&mut kit(dump, ", MULTIPACKET true").limit(limit));
        assert_eq!(ids(&out), [9, 9, 9, 8, 8, 7]);
        let times: Vec<_> = out.iter().map(|p| p.timestamp() / S).collect();
        assert_eq!(times, [1, 2, 3, 5, 5, 6]);
        let lengths: Vec<_> = out.iter().map(|p| p.len() as u32 + p.anno_u32(anno::EXTRA_LENGTH)).collect();
        assert_eq!(lengths, [334, 333, 333, 50, 50, 40]);
        assert!(out.iter().all(|p| p.anno_u32(anno::EXTRA_PACKETS) == 0));
    }
    let out = run(&mut kit(dump, ""));
    assert_eq!(out.iter().map(|p| p.anno_u32(anno::EXTRA_PACKETS)).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn sampling_and_state() {
    let dump = format!("!data ip_id\n{}", "1\n".repeat(1000));
    let mut k = kit(&dump, ", SAMPLE 0.5");
    let n = run(&mut k).len();
    assert!((400..600).contains(&n) && k.dropped(Reason::Sampled) == 1000 - n as u64);
    let (mut old, mut new) = (kit("!data ip_id\n1\n2\n3\n", "").limit(1), kit("!data ip_id\n1\n2\n3\n", ""));
    old.task();
    new.take_state_of(&mut old).unwrap();
    assert_eq!(ids(&run(&mut new)), [2, 3]);
    let mut k = kit(&dump, ", ACTIVE false");
    assert_eq!(run(&mut k).len(), 0);
    k.write("active", "true").unwrap();
    assert!(k.woken() && run(&mut k).len() == 1000);
    k.write("stop", "").unwrap();
    assert_eq!((k.stops(), k.read("active").unwrap()), (1, "false".into()));
    assert_eq!(kit(&dump, "").element.effects(Effects::from_bits_truncate(15)), Effects::empty());
}
