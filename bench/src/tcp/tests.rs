// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::bulk::Bulk as Bulks;
use super::contestant::Run;
use super::echo::{Pairs, START, connected, settle};
use super::host::{HEADERS, Host, Options};
use super::link::ends::Request;
use super::ours::{Castanet, Plain};
use super::theirs::Smoltcp;
use super::*;
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::checksum_ok;
use std::time::Duration;

const OPTIONS: Options = Options { buffer: 16_384, bare: false, burst: 1 };

/// Packets have right checksums, and the headers that all contestants have.
fn sends_whole_packets<H: Host>() {
    let mut pair = connected::<H>(OPTIONS, START);
    let [client, server] = &mut pair;
    for data in [&b"ping"[..], &b"longer data"[..]] {
        assert_eq!(client.send(data, START), data.len());
        let packet = client.take().unwrap();
        let bytes = H::bytes(&packet).to_vec();
        assert_eq!(bytes.len(), HEADERS + data.len());
        let ip = *Ipv4Header::checked(&bytes, true).unwrap();
        assert!(checksum_ok(ip.src.get(), ip.dst.get(), &bytes[20..]));
        server.input(packet, START);
        server.echo(START);
        let back = server.take().unwrap();
        assert!(H::bytes(&back).ends_with(data));
        client.input(back, START);
    }
    settle(&mut pair, START);
}

#[test]
fn packets_have_the_same_headers_and_right_checksums() {
    sends_whole_packets::<Castanet>();
    sends_whole_packets::<Plain>();
    sends_whole_packets::<Smoltcp>();
}

/// Changes the last byte of a packet of one of our hosts: it must not arrive.
#[test]
fn checksums_are_verified() {
    let [mut client, mut server] = connected::<Castanet>(OPTIONS, START);
    client.send(b"ping", START);
    let mut packet = client.take().unwrap();
    *packet.data_mut().last_mut().unwrap() ^= 1;
    server.input(packet, START);
    server.echo(START);
    assert!(server.take().is_none());
}

#[test]
fn all_contestants_echo_all_sizes() {
    for contestant in Contestant::ALL {
        for size in SIZES {
            let [input, output] = contestant.echo(size).unwrap().exchange(3).unwrap();
            assert!(input > 0.0 && output > 0.0, "{contestant:?}, {size}");
        }
    }
    // A host without room for the data does not echo it whole.
    assert!(Pairs::<Smoltcp>::new(MOST, Options { buffer: 1000, ..OPTIONS }).is_err());
}

#[test]
fn all_contestants_transfer_in_full_segments() {
    for contestant in Contestant::ALL {
        for burst in BURSTS {
            let moved = contestant.bulk(burst).unwrap().transfer(500_000).unwrap();
            let most = if contestant == Contestant::Bare { 1460.0 } else { MOST as f64 };
            let mean = moved.bytes / moved.segments;
            assert!(moved.bytes >= 500_000.0, "{contestant:?}: {moved:?}");
            assert!(mean > 0.95 * most && mean < 1.05 * most, "{contestant:?}: {mean} bytes a segment");
            assert!(moved.acknowledgements <= moved.segments, "{contestant:?}: {moved:?}");
        }
    }
    let options = Options { burst: usize::MAX, ..OPTIONS };
    assert!(Bulks::<Castanet>::new(options, 7).unwrap().transfer(100_000).is_ok());
}

#[test]
fn runs_as_text() {
    for text in ["0,echo,4,10", "2,echo,1448,1", "3,bulk,32,1000"] {
        assert!(Run::parse(text).is_some(), "{text}");
    }
    for text in ["", "4,echo,4,10", "0,echo,0,1", "0,echo,1449,1", "0,bulk,0,1", "0,fly,1,1", "0,echo,4,1,2"]
    {
        assert!(Run::parse(text).is_none(), "{text}");
    }
    Run::parse("0,echo,4,2").unwrap().run().unwrap();
    let time = Duration::from_millis(200);
    for request in [Request::Echo(7), Request::Send(time), Request::Receive(time)] {
        let server = host::ADDRESSES[0];
        assert_eq!(Request::parse(&request.line(server)), Some((request, server)));
    }
    for line in ["", "echo", "echo 4", "fly 4 10.0.0.1", "echo x 10.0.0.1", "echo 4 10.0.0.1 more"] {
        assert_eq!(Request::parse(line), None, "{line}");
    }
}

fn cost(ns: f64) -> Cost {
    Cost { turns: vec![ns, ns + 2.0, ns + 1.0], instructions: Some(10.0 * ns) }
}

fn quartiles(median: f64) -> Quartiles {
    Quartiles { lower: 0.9 * median, median, upper: 1.1 * median }
}

fn results() -> Results {
    let echo = |size| Echo {
        size,
        costs: [100.0, 250.0, 120.0, 90.0].map(|ns| [cost(ns), cost(ns + size as f64)]).into(),
    };
    let bulk = |burst| Bulk {
        burst,
        costs: [500.0, 900.0, 600.0, 550.0].map(cost).into(),
        rates: [20.0, 11.0, 18.0, 19.0].map(quartiles).into(),
        acknowledgements: vec![0.5; 4],
    };
    Results {
        echoes: SIZES.map(echo).into(),
        bulk: BURSTS.map(bulk).into(),
        link: Some(link::Results {
            trials: 5,
            processors: [0, 1],
            latency: [20.0, 25.0].map(quartiles),
            latency_ratio: quartiles(1.25),
            rates: [[30.0, 10.0].map(quartiles), [28.0, 14.0].map(quartiles)],
            notes: Vec::new(),
        }),
        notes: vec!["mind the gap".into()],
    }
}

#[test]
fn tables_show_everything() {
    let text = report::table(&results());
    let line = |start: &str| text.lines().find(|l| l.starts_with(start)).unwrap();
    let words: Vec<&str> = line("castanet, not inlined").split_whitespace().collect();
    assert_eq!(words.join(" "), "castanet, not inlined 253.0 (253.0 to 254.0) 2.46 2520 2.47 6833 2.23");
    let alike = |from: &str, n: usize| {
        let lines: Vec<&str> = text.lines().skip_while(|l| !l.starts_with(from)).skip(2).take(n).collect();
        assert!(lines.iter().all(|l| l.len() == lines[0].len()), "{lines:#?}");
        assert_eq!(lines.len(), n);
    };
    alike("SIGCOMM 1999 Figure 7", SIZES.len());
    alike("Bulk in memory, MTU 1500, both hosts on one processor; the receiver reads after 32", 4);
    assert!(text.contains("reads after each packet\n"));
    let ratio: Vec<&str> = line("ratio").split_whitespace().collect();
    assert_eq!(ratio, ["ratio", "1.25", "0.98", "0.33", "0.50"]);
    assert!(text.ends_with("note: mind the gap\n"));
}

#[test]
fn csv_and_json_say_the_same() {
    let r = results();
    let (csv, json) = (report::csv(&r), report::json(&r));
    // Each echo has two directions and units, each transfer three units.
    assert_eq!(csv.lines().count(), 1 + SIZES.len() * 4 * 4 + BURSTS.len() * 4 * 3 + 2 + 4);
    assert!(csv.lines().all(|l| l.split(',').count() >= 7), "{csv}");
    assert!(csv.contains("\ninput,\"smoltcp\",56,instructions,1200.0000,1200.0000,1200.0000\n"), "{csv}");
    let smoltcp = &json["tcp"]["echo"][0]["costs"]["smoltcp"];
    assert_eq!(smoltcp["input"]["instructions"], 1200.0);
    assert_eq!(smoltcp["output"]["ns"]["median"], 125.0);
    assert_eq!(json["tcp"]["bulk"][1]["costs"]["smoltcp, bare"]["gbps"]["median"], 19.0);
    assert_eq!(json["tcp"]["link"]["castanet"]["sends_gbps"]["median"], 14.0);
    assert_eq!(report::json(&Results::default())["tcp"]["link"], serde_json::Value::Null);
}

#[test]
fn pictures_stay_inside() {
    let picture = svg(&results());
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline").count(), 2 * 4);
    assert_eq!(picture.matches("<circle").count(), 2 * 4 * SIZES.len());
    assert!(picture.contains("the paper: 6833 cycles") && picture.contains("the paper: 181"));
    for at in picture.split("cx=\"").skip(1) {
        let x: f64 = at.split('"').next().unwrap().parse().unwrap();
        assert!((80.0..=720.0).contains(&x), "{x}");
    }
    assert_eq!(svg(&Results::default()).matches("<polyline").count(), 0);
}

#[test]
fn everything_in_memory_is_measured() {
    let settings = Settings {
        parts: vec![Part::Echo, Part::Bulk],
        seconds: 0.0,
        counter: None,
        link: link::Settings { program: std::path::PathBuf::new(), part: Vec::new(), processors: None },
    };
    let r = run_all(&settings).unwrap();
    assert_eq!(r.echoes.iter().map(|e| e.size).collect::<Vec<_>>(), SIZES);
    for cost in r.echoes.iter().flat_map(|e| &e.costs).flatten().chain(r.bulk.iter().flat_map(|b| &b.costs)) {
        assert!(cost.turns.len() == 3 && cost.turns.iter().all(|ns| *ns > 0.0), "{cost:?}");
    }
    assert!(r.link.is_none() && !report::table(&r).is_empty());
}
