// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench veth`: tests that it measures and prints results, but not the results themselves.
#![allow(clippy::unwrap_used)]

mod common;

use common::Bench;

const SHORT: [&str; 8] = ["bench", "veth", "--points", "2", "--rounds", "1", "--seconds", "0.5"];

#[test]
fn veth_measures_both_routers() {
    // First with the default generator, which is `live` where that is permitted; then with `packet`, which is
    // permitted everywhere.
    measures_both_routers(&[]);
    measures_both_routers(&["--generator", "packet"]);
}

/// Tests that the benchmark measures both routers. Retries with longer measurements, because on a busy machine a
/// router may get no processor time in a short trial.
fn measures_both_routers(further: &[&str]) {
    let b = Bench::new();
    for seconds in ["0.5", "5", "50"] {
        let last = seconds == "50";
        if measures(&b, &[further, &["--seconds", seconds]].concat(), last) {
            return;
        }
    }
}

/// Runs the benchmark once and checks its output. If no packets crossed one of the routers, returns false, or, in the
/// `last` try, fails the test.
fn measures(b: &Bench, further: &[&str], last: bool) -> bool {
    let arguments: Vec<&str> = SHORT[..6]
        .iter()
        .copied()
        .chain(["--json", "--csv", "t.csv", "--svg", "t.svg", "--tolerance", "50"])
        .chain(further.iter().copied())
        .collect();
    let ran = b.run("castanet", &arguments, "");
    if ran.err.contains("a host for the measurement cannot be made") || ran.err.contains("iproute2") {
        println!("SKIP: {}", ran.err.trim_end());
        return true;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let veth = &json["veth"];
    let crossed = |name: &&str| veth["capacities"][name]["peak"].as_f64().unwrap() > 0.0;
    if !last && !["kernel", "castanet"].iter().all(crossed) {
        return false;
    }
    // One point for each of two offered rates, and one for the highest rate that the generator can send.
    assert_eq!(veth["points"].as_array().unwrap().len(), 3, "{}", ran.out);
    for name in ["kernel", "castanet"] {
        let capacity = &veth["capacities"][name];
        assert!(capacity["peak"].as_f64().unwrap() > 0.0, "{}", ran.out);
        let (offered, forwarded) = (&capacity["overload"]["offered"], &capacity["overload"]["forwarded"]);
        // No packet is forwarded twice. But a few may be counted late, so the forwarded rate may slightly exceed
        // the offered rate.
        assert!(forwarded.as_f64().unwrap() <= offered.as_f64().unwrap() * 1.1 + 1e4, "{}", ran.out);
    }
    assert!(veth["capacities"]["castanet"]["cpu_ns"].as_f64().unwrap() > 0.0, "{}", ran.out);
    assert_eq!(veth["steered"], false);
    let notes = veth["notes"].to_string();
    match veth["generator"].as_str() {
        Some("live") => assert!(!further.contains(&"packet")),
        Some("packet") => {
            assert_eq!(!further.contains(&"packet"), notes.contains("slower than live frames"), "{notes}")
        }
        other => panic!("{other:?}"),
    }
    let csv = std::fs::read_to_string(b.path("t.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    assert!(csv.lines().all(|l| l.split(',').count() == 19), "{csv}");
    let svg = std::fs::read_to_string(b.path("t.svg")).unwrap();
    // Three lines: one for each router, and the ideal line.
    assert_eq!(svg.matches("<polyline").count(), 3);
    true
}

#[test]
fn veth_measures_programs_of_the_kernel() {
    let b = Bench::new();
    for (further, names) in [
        (&["--driver", "xdp"][..], &["kernel", "castanet-xdp", "xdp-forwarder", "xdp-drop"][..]),
        (
            &["--driver", "packet,af-xdp", "--task", "forward"],
            &["kernel", "castanet", "castanet-af-xdp", "af-xdp-bare"],
        ),
        (&["--driver", "packet,xdp", "--task", "receive"], &["kernel", "castanet", "castanet-xdp"]),
    ] {
        // On a busy machine a router may get no processor time in a short trial.
        for seconds in ["2", "20", "100"] {
            let arguments = [&SHORT[..6], &["--seconds", seconds, "--json"], further].concat();
            let ran = b.run("castanet", &arguments, "");
            let missing = ["cannot be made", "iproute2", "CAP_BPF", "no support for"];
            if missing.iter().any(|w| ran.err.contains(w)) {
                println!("SKIP: {}", ran.err.trim_end());
                return;
            }
            assert_eq!(ran.code, 0, "{}", ran.err);
            let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            let veth = &json["veth"];
            assert_eq!(veth["capacities"].as_object().unwrap().len(), names.len());
            let crossed = |name: &&str| veth["capacities"][name]["peak"].as_f64().unwrap() > 0.0;
            if !names.iter().all(crossed) {
                assert!(seconds != "100", "{}", ran.out);
                continue;
            }
            for (name, program) in veth["programs"].as_object().unwrap() {
                assert!(program["run_ns"]["median"].as_f64().unwrap() > 0.0, "{name}: {program}");
                assert!(program["executed"].as_u64().unwrap() >= 2, "{name}: {program}");
                if name == "castanet-xdp" {
                    assert!(program["stayed"].as_f64().unwrap() > 0.9, "{program}");
                }
            }
            break;
        }
    }
}

#[test]
fn veth_measures_lengths_and_flows() {
    let further = ["--length", "1514,60", "--flows", "1,2", "--points", "0"];
    // Without hosts, `drawn` prints a SKIP line.
    let Some((json, csv, _)) = drawn(&further, &[]) else { return };
    let points = json["veth"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 1, "{json}");
    for name in ["kernel-60-bytes-1-flow", "castanet-60-bytes-2-flows", "castanet-1514-bytes-2-flows"] {
        assert!(points[0]["routers"][name]["offered"].as_f64().unwrap() > 0.0, "{name}: {json}");
    }
    assert_eq!(json["veth"]["subjects"]["kernel-1514-bytes-2-flows"]["length"], 1514);
    let traffic: Vec<&str> = csv.lines().filter_map(|l| l.split(',').nth(14)).collect();
    assert_eq!(traffic, ["length", "60", "1514", "60", "1514", "60", "1514", "60", "1514"], "{csv}");
}

#[test]
fn veth_draws_figures() {
    for (figure, further, missing) in [
        ("hpsr-4", &["--flows", "1,3"][..], &[][..]),
        ("hpsr-5", &["--flows", "1,2"], &[]),
        ("hpsr-6a", &["--flows", "1,2"], &["by a filter of tc"]),
        ("hpsr-6b", &["--flows", "2", "--length", "60,508", "--kernel", "route"], &[]),
    ] {
        let further = [&["--figure", figure, "--driver", "packet"], further].concat();
        let Some((json, csv, svg)) = drawn(&further, missing) else { continue };
        let json = &json["veth"];
        assert_eq!(json["figure"]["name"], figure);
        let rows = json["figure"]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{json}");
        assert!(rows[0]["paper"].as_object().is_some(), "{json}");
        let values = rows[0]["values"].as_object().unwrap();
        assert!(values.keys().any(|name| name.starts_with("castanet")), "{json}");
        let received = csv.lines().skip(1).all(|l| l.split(',').nth(17) != Some(""));
        assert_eq!(received, figure == "hpsr-6a", "{csv}");
        assert!(svg.contains("HPSR 2005, Figure"), "{svg}");
    }
}

/// Runs the benchmark as often as it takes until packets cross all routers, each time for longer. Returns its JSON, CSV and drawing;
/// `None` if this machine cannot, as it says in one of the words of `missing`.
fn drawn(further: &[&str], missing: &[&str]) -> Option<(serde_json::Value, String, String)> {
    let b = Bench::new();
    for seconds in ["1", "10", "100"] {
        let fixed = ["bench", "veth", "--rounds", "1", "--json", "--csv", "f.csv", "--svg", "f.svg"];
        let ran = b.run("castanet", &[&fixed[..], &["--seconds", seconds], further].concat(), "");
        let host = ["a host for the measurement cannot be made", "iproute2"];
        if host.iter().chain(missing).any(|why| ran.err.contains(why)) {
            println!("SKIP: {}", ran.err.trim_end());
            return None;
        }
        assert_eq!(ran.code, 0, "{further:?}: {}", ran.err);
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let capacities = json["veth"]["capacities"].as_object().unwrap();
        if capacities.values().all(|c| c["peak"].as_f64().unwrap() > 0.0) {
            let [csv, svg] = ["f.csv", "f.svg"].map(|f| std::fs::read_to_string(b.path(f)).unwrap());
            assert!(csv.lines().all(|l| l.split(',').count() == 19), "{csv}");
            return Some((json, csv, svg));
        }
    }
    panic!("no packets cross some of the routers: {further:?}");
}

#[test]
fn streams_cross_with_each_driver() {
    let b = Bench::new();
    let arguments = ["bench", "streams", "--seconds", "0", "--json", "--csv", "s.csv", "--svg", "s.svg"];
    let ran = b.run("castanet", &arguments, "");
    let cannot = ["a host for the measurement cannot be made", "iproute2", "ethtool", "grant CAP_"];
    if cannot.iter().any(|why| ran.err.contains(why)) {
        println!("SKIP: {}", ran.err.trim_end());
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let routers = json["streams"]["routers"].as_array().unwrap();
    let names: Vec<&str> = routers.iter().map(|r| r["router"].as_str().unwrap()).collect();
    assert_eq!(names, ["kernel", "packet", "kernel", "packet", "af-xdp", "xdp", "kernel", "packet"]);
    for router in routers {
        assert!(router["gbps"]["median"].as_f64().unwrap() > 0.0, "{router}");
        assert!(router["round_trip_us"]["median"].as_f64().unwrap() > 0.0, "{router}");
    }
    let lines = std::fs::read_to_string(b.path("s.csv")).unwrap().lines().count();
    assert_eq!(lines, 1 + 3 * routers.len());
    assert!(std::fs::read_to_string(b.path("s.svg")).unwrap().contains("af-xdp"));
    let nat =
        ["bench", "streams", "--seconds", "0", "--csv", "nat.csv", "--driver", "packet", "--task", "nat"];
    let ran = b.run("castanet", &nat, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = std::fs::read_to_string(b.path("nat.csv")).unwrap();
    let names: Vec<&str> = text.lines().skip(1).map_while(|line| line.split(',').next()).step_by(3).collect();
    assert_eq!(names, ["kernel", "packet-nat", "kernel", "packet-nat", "kernel", "packet-nat"]);
}

#[test]
fn what_is_wrong_with_a_configuration_is_told() {
    let b = Bench::new();
    for (name, text, says) in [
        ("class.click", "FromDevice(in) -> NoSuch -> Discard;", "NoSuch"),
        ("device.click", "FromDevice(nowhere) -> Discard;", "nowhere: no such device"),
    ] {
        b.file(name, text);
        let ran = b.run("castanet", &[&SHORT[..], &[name]].concat(), "");
        if ran.err.contains("a host for the measurement cannot be made") || ran.err.contains("iproute2") {
            println!("SKIP: {}", ran.err.trim_end());
            return;
        }
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
        assert!(ran.err.contains(says), "{}", ran.err);
    }
    let ran = b.run("castanet", &[&SHORT[..], &["no-such-file.click"]].concat(), "");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no-such-file.click: No such file or directory"), "{}", ran.err);
    for wrong in [["--length", "59"], ["--points", "101"], ["--tolerance", "101"], ["--processors", "1"]] {
        assert_eq!(b.run("castanet", &[&SHORT[..], &wrong].concat(), "").code, 2, "{wrong:?}");
    }
}

#[test]
fn scale_measures_and_predicts() {
    let b = Bench::new();
    let short = ["bench", "scale", "--seconds", "0.1", "--rounds", "1", "--csv", "s.csv", "--svg", "s.svg"];
    let ran = b.run("castanet", &short, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for text in [
        "independent chains",
        "locked RatedSplitter",
        "45 %, left out",
        "predicted throughput",
        "ip-router: shared: 2 ARPQuerier, 4 Queue; locked: none",
        "bridge: shared: EtherSpanTree, EtherSwitch, 4 Queue, 2 Suppressor; locked: none",
    ] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
    let csv = std::fs::read_to_string(b.path("s.csv")).unwrap();
    assert!(
        csv.starts_with("what,name,cores,median,min,max\n") && csv.contains("predicted,\"nat\",64,"),
        "{csv}"
    );
    assert!(std::fs::read_to_string(b.path("s.svg")).unwrap().starts_with("<svg"));

    let json = [&short[..6], &["--json", "--socket-cores", "8", "--numa-factor", "2.5"]].concat();
    let ran = b.run("castanet", &json, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let scale = &json["scale"];
    assert_eq!(scale["numa_factor"], 2.5);
    let names: Vec<&str> =
        scale["shipped"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ip-router", "nat", "firewall", "bridge"]);
    for kind in scale["kinds"].as_array().unwrap().iter().chain(scale["shipped"].as_array().unwrap()) {
        assert!(kind["ns"][1]["median"].as_f64().unwrap() > 0.0, "{kind}");
    }
    for prediction in scale["predictions"].as_array().unwrap() {
        assert_eq!(prediction["cores"].as_array().unwrap().len(), 5);
    }

    assert_eq!(b.run("castanet", &["bench", "scale", "--numa-factor", "0.5"], "").code, 2);
}

#[test]
fn aspl_measures_the_papers_figures() {
    let b = Bench::new();
    let short = ["bench", "aspl", "--seconds", "0", "--batch", "32", "--csv", "a.csv", "--svg", "a.svg"];
    let ran = b.run("castanet", &short, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for text in [
        "ASPLOS Figure 8, memory to memory: shares of the total; batch 32",
        "ASPLOS Figure 9, forwarding path: ratios to Base; batch 32",
        "TOCS Table I, memory to memory: shares of the total; batch 32",
        "TOCS Table II: shares of the subtotal; batch 32",
        "TOCS section 6.4, forwarding path: ratios to Base; batch 32",
        "\nMR+XF+FC ",
        "\nAll (as loaded) ",
        "\ncombination elements and 8 no-ops ",
        "\nARPQuerier ",
    ] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
    let csv = std::fs::read_to_string(b.path("a.csv")).unwrap();
    let columns = |line: &str| line.matches(',').count();
    assert!(csv.lines().all(|l| columns(l) == columns(csv.lines().next().unwrap())), "{csv}");
    assert!(csv.contains("\nasplos-9-path,32,\"Base\",") && csv.contains(",1657.000,1.000,,,\n"), "{csv}");
    assert!(std::fs::read_to_string(b.path("a.svg")).unwrap().starts_with("<svg"));

    let ran =
        b.run("castanet", &["bench", "aspl", "modularity", "--seconds", "0", "--batch", "8", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let lines = json["aspl"]["lines"].as_array().unwrap();
    assert!(
        lines.len() == 3 && lines.iter().all(|l| l["figure"] == "tocs-6.4" && l["batch"] == 8),
        "{}",
        ran.out
    );
    let ran = b.run("castanet", &["bench", "aspl", "figures"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("expected one of passes, elements, modularity, devices"), "{}", ran.err);
}

#[test]
fn classes_are_measured() {
    let b = Bench::new();
    let words = ["bench", "classes", "Paint", "Discard", "--seconds", "0", "--batch", "8", "--csv", "c.csv"];
    let ran = b.run("castanet", &words, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].starts_with("class  ") && lines[1].ends_with("batch 8"), "{}", ran.out);
    assert!(lines[2].starts_with("Paint  "), "{}", ran.out);
    assert!(ran.out.ends_with("\nnot measured:\nDiscard: it has no inputs or no outputs\n"), "{}", ran.out);
    let csv = std::fs::read_to_string(b.path("c.csv")).unwrap();
    assert!(csv.lines().count() == 2 && csv.contains("\nPaint,8,"), "{csv}");

    let ran = b.run("castanet", &["bench", "classes", "HashDemux", "--seconds", "0", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["classes"][0]["element"], "HashSwitch(0, 8)");
    assert_eq!(json["classes"][0]["costs"].as_array().unwrap().len(), 2);
    let ran = b.run("castanet", &["bench", "classes", "Pain"], "");
    assert_eq!(ran.code, 1);
    assert!(ran.err.ends_with("castanet: no class named 'Pain'\n"), "{}", ran.err);
}

#[test]
fn full_route_tables_are_measured() {
    let b = Bench::new();
    let short = ["bench", "routes", "--seconds", "0.4", "--prefixes", "3000", "--changes", "1000"];
    let ran = b.run("castanet", &short, "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let firsts: Vec<_> = ran.out.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(firsts, ["3000", "class", "DirectIPLookup", "RadixIPLookup"], "{}", ran.out);
    let ran = b.run("castanet", &[&short[..], &["--json"]].concat(), "");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    for table in json["routes"]["tables"].as_array().unwrap() {
        assert!(table["changes_per_second"].as_f64().unwrap() > 0.0, "{table}");
        assert!(table["packets_per_cpu_second"]["with"]["median"].as_f64().unwrap() > 0.0, "{table}");
    }
    assert_eq!(b.run("castanet", &["bench", "routes", "--prefixes", "0"], "").code, 2);
}

#[test]
fn aspl_measures_routers_between_devices() {
    let b = Bench::new();
    let words = ["bench", "aspl", "devices", "--points", "1", "--rounds", "1", "--seconds", "1", "--json"];
    let ran = b.run("castanet", &words, "");
    if ran.err.contains("a host for the measurement cannot be made") || ran.err.contains("iproute2") {
        println!("SKIP: {}", ran.err.trim_end());
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let lines = json["aspl"]["lines"].as_array().unwrap();
    assert!(lines.len() == 4 && lines.iter().all(|l| l["figure"] == "asplos-8-devices"), "{}", ran.out);
    let routers = json["aspl"]["devices"]["routers"].as_array().unwrap();
    let names: Vec<&str> = routers.iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["Simple", "Base"]);
    assert_eq!(names.len(), 4);
    for router in routers {
        // One input rate, and the highest that the generator can send.
        let points = router["points"].as_array().unwrap();
        assert_eq!(points.len(), 2);
        for p in points {
            let outcomes = p["outcomes"].as_object().unwrap();
            let known: f64 = outcomes.values().map(|v| v.as_f64().unwrap()).sum();
            // A few packets may be counted late.
            assert!(known <= p["input"].as_f64().unwrap() * 1.1 + 1e4, "{p}");
        }
    }
}
