// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state machine: each state meets segments, calls of the user and timeouts. The rules are those of RFC 9293, section 3.10.

use super::host::checksum;
use super::network::{End, MARKED, ROUTED};
use super::{all_but, named, tcp, tcp_of};
use castanet_prolac::load::{Extensions, Files, Folder};
use castanet_prolac::program::Program;
use std::collections::BTreeMap;

/// How each state is reached. Sequence numbers count from the SYN, of either side.
const WAYS: [(&str, &str); 13] = [
    ("CLOSED", ""),
    ("LISTEN", "listen"),
    ("SYN-SENT", "connect"),
    ("SYN-RECEIVED", "listen; SYN 0"),
    // Simultaneous open: the state is that of an active one.
    ("SYN-RECEIVED'", "connect; SYN 0"),
    ("ESTABLISHED", "listen; SYN 0; ACK 1 1"),
    ("FIN-WAIT-1", "listen; SYN 0; ACK 1 1; close"),
    ("FIN-WAIT-2", "listen; SYN 0; ACK 1 1; close; ACK 1 2"),
    ("CLOSE-WAIT", "listen; SYN 0; ACK 1 1; FIN+ACK 1 1"),
    ("CLOSING", "listen; SYN 0; ACK 1 1; close; FIN+ACK 1 1"),
    ("LAST-ACK", "listen; SYN 0; ACK 1 1; FIN+ACK 1 1; close"),
    ("TIME-WAIT", "listen; SYN 0; ACK 1 1; close; ACK 1 2; FIN+ACK 1 2"),
    ("TIME-WAIT'", "listen; SYN 0; ACK 1 1; close; FIN+ACK 1 1; ACK 2 2"),
];

const STATES: [&str; 11] = [
    "CLOSED",
    "LISTEN",
    "SYN-SENT",
    "SYN-RECEIVED",
    "ESTABLISHED",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "CLOSE-WAIT",
    "CLOSING",
    "LAST-ACK",
    "TIME-WAIT",
];
const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
pub const ISS: u32 = 0xffff_ffff;
pub const PEER: u32 = 0x9000_0000;
/// The first timestamp of the peer.
const PEER_CLOCK: u32 = 0xffff_fff0;

/// The options in a segment: `mss1000` is a maximum segment size, `ws7` is a window scale, `ts1:2` a timestamp and its echo, `sackok` permits selective acknowledgements,
/// `sack3:5,7:9` is one, `odd3` an unknown option of three bytes.
fn options(words: &[&str]) -> Vec<u8> {
    let mut b = Vec::new();
    for word in words {
        if let Some(n) = word.strip_prefix("ws") {
            b.extend([3, 3, n.parse().unwrap()]);
        } else if let Some((value, echo)) = word.strip_prefix("ts").and_then(|w| w.split_once(':')) {
            let number = |text: &str, base: u32| base.wrapping_add(text.parse::<i32>().unwrap() as u32);
            b.extend([8, 10]);
            b.extend(number(value, PEER_CLOCK).to_be_bytes());
            b.extend(number(echo, ISS).to_be_bytes());
        } else if let Some(n) = word.strip_prefix("mss") {
            b.extend([2, 4]);
            b.extend(n.parse::<u16>().unwrap().to_be_bytes());
        } else if *word == "sackok" {
            b.extend([4, 2]);
        } else if let Some(blocks) = word.strip_prefix("sack") {
            let edges: Vec<i32> = blocks.split([',', ':']).map(|n| n.parse().unwrap()).collect();
            b.extend([5, 2 + 4 * edges.len() as u8]);
            b.extend(edges.iter().flat_map(|n| ISS.wrapping_add(*n as u32).to_be_bytes()));
        } else if let Some(n) = word.strip_prefix("odd") {
            b.extend([254, n.parse().unwrap(), 8]);
        }
    }
    b.resize(b.len().next_multiple_of(4), 1);
    b
}

/// A segment of the peer, such as `FIN+ACK 1 1 +5`: flags, number, acknowledgement, bytes of data.
pub fn segment(text: &str) -> Vec<u8> {
    let mut words = text.split_whitespace();
    let flags = words.next().unwrap().split('+');
    let flags = flags.fold(0, |n, f| n | 1 << FLAGS.iter().position(|g| *g == f).unwrap());
    let words: Vec<&str> = words.collect();
    let number = |n: usize| words.get(n).map_or(0, |w| w.parse::<i32>().unwrap_or(0) as u32);
    let seqno = PEER.wrapping_add(number(0));
    let ackno = if flags & 16 != 0 { ISS.wrapping_add(number(1)) } else { 0 };
    let option = |mark: char| words.iter().find_map(|w| w.strip_prefix(mark)?.parse::<usize>().ok());
    let mut b = vec![0; 20];
    b[..4].copy_from_slice(&[0, 80, 3, 232]);
    b[4..8].copy_from_slice(&seqno.to_be_bytes());
    b[8..12].copy_from_slice(&ackno.to_be_bytes());
    b.extend(options(&words));
    (b[12], b[13]) = ((b.len() * 4) as u8, flags);
    b[14..16].copy_from_slice(&(option('w').unwrap_or(8_000) as u16).to_be_bytes());
    b[18..20].copy_from_slice(&(option('u').unwrap_or(0) as u16).to_be_bytes());
    b.extend((0..option('+').unwrap_or(0)).map(|i| i as u8));
    let sum = checksum(&b).to_be_bytes();
    b[16..18].copy_from_slice(&sum);
    b
}

/// The window and the options of a segment of the TCP, but for the MSS. Only one table is about selective acknowledgements.
fn shown_options(b: &[u8], table: Table) -> String {
    let mut text = format!(" w{}", u16::from_be_bytes([b[14], b[15]]));
    let mut list = &b[20..usize::from(b[12] >> 4) * 4];
    while let [kind, rest @ ..] = list {
        let length = if *kind == 1 { 1 } else { usize::from(rest[0]) };
        let at = |n: usize| u32::from_be_bytes(list[n..n + 4].try_into().unwrap());
        match (*kind, length) {
            (1, _) | (2, 4) => {}
            (3, 3) => text.push_str(&format!(" ws{}", list[2])),
            (8, 10) => {
                let echo = at(6).wrapping_sub(PEER_CLOCK) as i32;
                let echo = if at(6) == 0 { "zero".to_string() } else { echo.to_string() };
                text.push_str(&format!(" ts{}:{echo}", at(2).wrapping_sub(ISS) as i32));
            }
            (4, 2) if table == Table::Options => {}
            (4, 2) => text.push_str(" sackok"),
            (5, 10 | 18 | 26 | 34) => {
                let edges: Vec<String> =
                    (2..length).step_by(4).map(|i| at(i).wrapping_sub(PEER).to_string()).collect();
                let blocks: Vec<String> = edges.chunks(2).map(|b| b.join(":")).collect();
                text.push_str(&format!(" sack{}", blocks.join(",")));
            }
            other => panic!("{other:?}"),
        }
        list = &list[length..];
    }
    text
}

/// A segment of the TCP, in the same form.
fn shown(b: &[u8], table: Table) -> String {
    let flags: Vec<&str> = (0..8).filter(|i| b[13] >> i & 1 == 1 && *i != 3).map(|i| FLAGS[i]).collect();
    let at = |n: usize| u32::from_be_bytes(b[n..n + 4].try_into().unwrap());
    let from = |n: u32, base: u32| n.wrapping_sub(base) as i32;
    let mut text = flags.join("+");
    // The reset of a segment without ACK has number 0.
    match (b[13] & 4 != 0 && b[13] & 16 != 0, at(4)) {
        (true, 0) => text.push_str(" zero"),
        (_, seqno) => text.push_str(&format!(" {}", from(seqno, ISS))),
    }
    if b[13] & 16 != 0 {
        text.push_str(&format!(" {}", from(at(8), PEER)));
    }
    if b[13] & 32 != 0 || b[18..20] != [0, 0] {
        text.push_str(&format!(" u{}", u16::from_be_bytes([b[18], b[19]])));
    }
    if matches!(table, Table::Options | Table::Sack) {
        text.push_str(&shown_options(b, table));
    }
    match b.len() - usize::from(b[12] >> 4) * 4 {
        0 => text,
        n => format!("{text} +{n}"),
    }
}

/// Lets an event happen, and says what the call of the user answered.
pub fn happen(end: &mut End<'_>, event: &str) -> Option<&'static str> {
    let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
    let value = match word {
        "write" | "queue" => {
            let n: usize = rest.parse().unwrap();
            end.data.borrow_mut().send.extend((0..n).map(|i| i as u8));
            if word == "write" {
                end.tcp("output");
            }
            return None;
        }
        "wait" => {
            for _ in 0..rest.parse::<u32>().unwrap() * 2 {
                end.tcp("slow-timeout");
            }
            return None;
        }
        "user-timeout" | "keep-alive-after" | "use-ecn" | "use-route" => {
            end.tcp_with(word, rest.parse().unwrap());
            return None;
        }
        "keep-alive" | "slow-timeout" | "discover-path-mtu" => {
            end.tcp(word);
            return None;
        }
        "error" => {
            let numbers: Vec<u32> = rest.split(' ').map(|n| n.parse().unwrap()).collect();
            let at = |n: usize| numbers.get(n).copied().unwrap_or(0);
            let effect = end.icmp_error([at(0), at(1), ISS.wrapping_add(at(2)), at(3), at(4)]);
            return Some(["ignored", "stale", "noted", "aborted", "resized"][effect as usize]);
        }
        "room" => {
            end.data.borrow_mut().buffer = rest.parse().ok();
            return None;
        }
        "full" => {
            end.data.borrow_mut().waiting = vec![0; 8_000];
            return None;
        }
        // `marked ` or `routed 12 ` before a segment: what the host says of its packet.
        "marked" => {
            end.input_noted(segment(rest), MARKED);
            return None;
        }
        "routed" => {
            let (length, rest) = rest.split_once(' ').unwrap();
            end.data.borrow_mut().route = length.parse().unwrap();
            end.input_noted(segment(rest), ROUTED);
            return None;
        }
        "stray" => {
            end.input(segment(rest), true);
            return None;
        }
        "close-full" => {
            let unread = end.data.borrow().waiting.len();
            end.tcp_with(word, unread as u64).number()
        }
        "listen" | "connect" | "send" | "send-urgent" | "receive" | "close" | "abort" => {
            end.tcp(word).number()
        }
        _ => {
            end.input(segment(event), false);
            return None;
        }
    };
    Some(["ok", "no-connection", "exists", "closing"][value as usize])
}

/// The next state, what is sent and what the user is told, and the calls of the TCP and of the host.
fn outcome(program: &Program, table: Table, [state, events]: [&str; 2]) -> (String, String, String) {
    let way = WAYS.iter().find(|(name, _)| *name == state).unwrap().1;
    let mut end = End::new(program, ISS, [1000, 80], Vec::new());
    for event in way.split("; ").filter(|e| !e.is_empty()) {
        happen(&mut end, event);
    }
    let reached = STATES[end.field("state") as usize];
    assert_eq!(reached, state.trim_end_matches('\''), "{way}");
    let before = {
        let mut d = end.data.borrow_mut();
        (d.out, d.capable) = Default::default();
        (d.connected, d.end_of_data)
    };
    let mut answers: Vec<String> = Vec::new();
    // The numbers of segments that went out while the clock was watched, and the half seconds then.
    let mut times = BTreeMap::new();
    for event in events.split("; ") {
        if let Some(seconds) = event.strip_prefix("watch ") {
            for tick in 1..=seconds.parse::<usize>().unwrap() * 2 {
                let first = end.data.borrow().out.len();
                end.tcp("slow-timeout");
                let last = end.data.borrow().out.len();
                times.extend((first..last).map(|i| (i, tick)));
            }
            continue;
        }
        answers.extend(happen(&mut end, event).map(str::to_string));
        // An acknowledgement that an extension has delayed is sent now.
        end.tcp("fast-timeout");
    }
    let (next, trace) = (STATES[end.field("state") as usize].to_string(), end.trace());
    let d = end.data.borrow();
    let time = |i| times.get(&i).map_or(String::new(), |t| format!("@{} ", *t as f64 / 2.0));
    // Only one table is about packets that may be marked.
    let mark = |i: usize| if table == Table::Ecn && d.capable[i] { " ect" } else { "" };
    let segments = d.out.iter().enumerate().map(|(i, s)| time(i) + &shown(s, table) + mark(i));
    let segments: Vec<String> = segments.collect();
    let mut effects: Vec<String> = Vec::new();
    for same in segments.chunk_by(|a, b| a == b) {
        match same.len() {
            0..6 => effects.extend_from_slice(same),
            n => effects.push(format!("{n} x {}", same[0])),
        }
    }
    effects.extend(answers);
    effects.extend((d.connected && !before.0).then(|| "connected".into()));
    if !d.waiting.is_empty() && d.waiting.len() < 8_000 {
        effects.push(format!("delivered {}", d.waiting.len()));
    }
    effects.extend(d.urgent.iter().map(|n| format!("urgent {n}")));
    effects.extend((d.end_of_data && !before.1).then(|| "end".into()));
    let why = |n: u64| ["finished", "reset", "refused", "timeout", "unreachable"][n as usize].to_string();
    effects.extend(d.disconnected.map(why));
    (next, effects.join("; "), trace)
}

/// The tables. Those of options and of selective acknowledgements show windows and options.
#[derive(Clone, Copy, PartialEq)]
pub enum Table {
    States,
    Options,
    Sack,
    PathMtu,
    Ecn,
    SourceRoute,
}

/// The cells of a table, row by row.
fn rows(table: Table) -> impl Iterator<Item = [&'static str; 4]> {
    let text = match table {
        Table::States => include_str!("states.txt"),
        Table::Options => include_str!("options.txt"),
        Table::Sack => include_str!("sack.txt"),
        Table::PathMtu => include_str!("pathmtu.txt"),
        Table::Ecn => include_str!("ecn.txt"),
        Table::SourceRoute => include_str!("srcroute.txt"),
    };
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty());
    lines.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{line}"))
    })
}

/// A trace of each row.
pub fn traces(program: &Program, table: Table) -> Vec<String> {
    rows(table).map(|[state, events, ..]| outcome(program, table, [state, events]).2).collect()
}

/// The rows of the table that do not hold.
fn differences(program: &Program, table: Table) -> Vec<String> {
    let mut wrong = Vec::new();
    for [state, events, next, effects] in rows(table) {
        let is = outcome(program, table, [state, events]);
        if (is.0.as_str(), is.1.as_str()) != (next, effects) {
            wrong.push(format!("{state} | {events} | {} | {}   instead of {next} | {effects}", is.0, is.1));
        }
    }
    wrong
}

#[test]
fn the_table_of_states_holds() {
    for extensions in [Extensions::none(), Extensions::All] {
        let wrong = differences(&tcp(&extensions), Table::States);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::States).count() > 150);
}

#[test]
fn the_table_of_options_holds() {
    for extensions in [named(&["Window-Scale", "Timestamps"]), Extensions::All] {
        let wrong = differences(&tcp(&extensions), Table::Options);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::Options).count() > 30);
}

#[test]
fn the_table_of_selective_acknowledgements_holds() {
    for extensions in
        [named(&["Fast-Retransmit", "Sack"]), all_but(&["Window-Scale", "Timestamps", "Slow-Start", "Cubic"])]
    {
        let wrong = differences(&tcp(&extensions), Table::Sack);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::Sack).count() > 20);
}

#[test]
fn the_table_of_path_mtu_discovery_holds() {
    // In slow start, a timeout lets out one segment.
    for extensions in [
        named(&["Path-Mtu"]),
        named(&["Path-Mtu", "Fast-Retransmit", "Sack", "Header-Prediction", "Delay-Ack"]),
    ] {
        let wrong = differences(&tcp(&extensions), Table::PathMtu);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::PathMtu).count() > 20);
}

#[test]
fn the_table_of_congestion_notification_holds() {
    for extensions in
        [named(&["Ecn"]), named(&["Ecn", "Fast-Retransmit", "Sack", "Header-Prediction", "Path-Mtu"])]
    {
        let wrong = differences(&tcp(&extensions), Table::Ecn);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::Ecn).count() > 20);
}

#[test]
fn the_table_of_source_routes_holds() {
    for extensions in
        [named(&["Source-Route"]), named(&["Source-Route", "Header-Prediction", "Path-Mtu", "Ecn"])]
    {
        let wrong = differences(&tcp(&extensions), Table::SourceRoute);
        assert!(wrong.is_empty(), "{extensions:?}\n{}", wrong.join("\n"));
    }
    assert!(rows(Table::SourceRoute).count() > 12);
}

/// A pointer to data that the user has is not urgent, even if that data has not been acknowledged yet.
#[test]
fn old_urgent_data_is_not_urgent() {
    let program = tcp(&Extensions::All);
    let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
    for event in ["listen", "SYN 0", "ACK 1 1", "ACK 1 1 +5", "URG+ACK 6 1 u0"] {
        happen(&mut end, event);
    }
    assert_eq!(end.data.borrow().waiting.len(), 5);
    assert!(end.data.borrow().urgent.is_empty());
}

/// RFC 7323, section 2.3: larger shifts than 14 count as 14.
#[test]
fn the_largest_shift_is_14() {
    let program = tcp(&Extensions::All);
    for (shift, window) in [(0, 1), (13, 1 << 13), (14, 1 << 14), (15, 1 << 14), (255, 1 << 14)] {
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        for event in ["listen", &format!("SYN 0 ws{shift}"), "ACK 1 1 w1"] {
            happen(&mut end, event);
        }
        assert_eq!(end.field("snd_wnd"), window);
    }
}

/// The files of the TCP, with a timestamp that is outdated after 20 ticks instead of 24 days.
struct Hasty;

impl Files for Hasty {
    fn read(&self, from: &str, name: &str) -> Result<(String, String), String> {
        let (name, text) = Folder.read(from, name)?;
        let days = (24 * 24 * 3600 * 2).to_string();
        assert_eq!(text.contains(&days), name.ends_with("timestamp.pc"));
        Ok((name, text.replace(&days, "20")))
    }
}

/// RFC 7323, section 5.5: a timestamp that was not renewed for 24 days is no longer compared.
#[test]
fn outdated_timestamps_are_not_compared() {
    for extensions in [named(&["Timestamps"]), Extensions::All] {
        let program = tcp_of(&Hasty, &extensions);
        for (seconds, delivered) in [(9, false), (10, true)] {
            let start = "listen; SYN 0 ts5:0; ACK 1 1 ts6:0";
            let events = format!("{start}; wait {seconds}; ACK 1 1 +5 ts1:0; ACK 6 1 +5 ts0:0");
            let effects = outcome(&program, Table::Options, ["CLOSED", &events]).1;
            assert_eq!(effects.ends_with("delivered 5"), delivered, "{seconds}: {effects}");
        }
    }
}
