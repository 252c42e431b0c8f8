// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offloads at the defaults of Linux: super-packets and partial checksums cross the router, and captures do not
//! show them.

use crate::net::{Net, castanet, hosts, lab, ours};
use castanet_lab::{Process, Router, RouterKind};
use std::time::{Duration, Instant};

/// Measures with iperf3. Returns the TCP rate from a to b in bits per second, and the mean packet size at b
/// in bytes.
fn throughput(net: &Net, seconds: &str) -> (f64, f64) {
    let mut server = net.b.spawn("iperf3 -s -1 --forceflush");
    server.wait_for("listening", Duration::from_secs(200));
    let before = ["rx/bytes", "rx/packets"].map(|c| net.b.statistic("eth0", c));
    let report = net.a.run(&format!("iperf3 -c 10.0.1.2 -t {seconds} -J")).good();
    assert!(server.wait(Duration::from_secs(200)).ok());
    let [bytes, packets] = ["rx/bytes", "rx/packets"].map(|c| net.b.statistic("eth0", c));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap_or_default();
    let bits = report.pointer("/end/sum_received/bits_per_second").and_then(serde_json::Value::as_f64);
    (bits.unwrap_or(0.0), (bytes - before[0]) as f64 / (packets - before[1]).max(1) as f64)
}

fn without_offloads(net: &Net) {
    for host in [&net.a, &net.b, &net.r.host] {
        for device in ["eth0", "eth1"] {
            if host.run(&format!("ip link show {device}")).ok() {
                host.run(&format!("ethtool -K {device} tx off rx off sg off tso off gso off gro off")).good();
            }
        }
    }
}

#[test]
fn super_packets_cross_in_one_piece() {
    let Some(net) = Net::new(ours()) else { return };
    let size = throughput(&net, "1").1;
    assert!(size > 3000.0, "{size} bytes a packet");
    drop(net);
    let Some(net) = Net::new(ours()) else { return };
    without_offloads(&net);
    let size = throughput(&net, "1").1;
    assert!(size < 1600.0, "{size} bytes a packet");
}

/// Prints the TCP rates with offloads, without offloads, and with the kernel as the router. Only checks that the rate
/// with offloads is higher than the rate without. The ratios of the rates depend on the load of the machine.
#[test]
#[ignore = "measures time; run by .ci/long"]
fn offloads_make_tcp_faster() {
    let (mut rates, mut kernel, mut off) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let Some(net) = Net::new(ours()) else { return };
        rates.push(throughput(&net, "1").0);
        drop(net);
        let Some(net) = Net::new(RouterKind::Kernel) else { return };
        kernel.push(throughput(&net, "1").0);
        drop(net);
        let Some(net) = Net::new(ours()) else { return };
        without_offloads(&net);
        off.push(throughput(&net, "1").0);
    }
    let best = |all: &[f64]| all.iter().copied().fold(0.0, f64::max) / 1e9;
    let (rate, kernel, off) = (best(&rates), best(&kernel), best(&off));
    println!(
        "TCP in Gbit/s: {rate:.2} with offloads, {off:.2} without ({:.1} times), {kernel:.2} by the kernel ({:.2} of it)",
        rate / off,
        rate / kernel
    );
    assert!(rate > off, "offloads make it slower");
}

#[test]
fn captures_show_completed_packets() {
    let Some(lab) = lab() else { return };
    let (a, r, b) = hosts(&lab);
    let mut new = a.command(castanet());
    new.args(["new", "ip-router", "eth0=10.0.0.1/24", "eth1=10.0.1.1/24"]);
    let text = Process::start(new).wait(Duration::from_secs(200)).good();
    // Adds a dump after the queue of each interface, with a counter before it.
    let outward = "queue :: Queue -> ToDevice($dev)";
    assert!(text.contains(outward), "{text}");
    let dump = std::env::temp_dir().join(format!("castanet-offload-{}.pcap", std::process::id()));
    let text = text.replace(
        outward,
        &format!(
            "queue :: Queue -> unqueue :: Unqueue(64) -> counter :: Counter -> tee :: Tee -> out :: Queue -> ToDevice($dev);\n    \
             tee [1] -> ToDump({}.$dev, ENCAP ETHER)",
            dump.display()
        ),
    );
    let r = Router::run(r, castanet(), &["-e", &text], 2);
    let mut server = b.spawn("iperf3 -s -1 --forceflush");
    server.wait_for("listening", Duration::from_secs(200));
    a.run("iperf3 -c 10.0.1.2 -n 4M -J").good();
    assert!(server.wait(Duration::from_secs(200)).ok());
    r.stop();
    let mut segments = 0;
    for device in ["eth0", "eth1"] {
        let file = format!("{}.{device}", dump.display());
        let fields = "tcp.checksum.status ip.checksum.status frame.len".split(' ');
        let mut tshark = std::process::Command::new("tshark");
        tshark.args(["-n", "-r", &file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
        tshark.args(["-Y", "tcp", "-T", "fields"]).args(fields.flat_map(|f| ["-e", f]));
        let Ok(out) = tshark.output() else {
            println!("SKIP: no tshark to look with");
            return;
        };
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            let words: Vec<&str> = line.split('\t').collect();
            assert!(
                matches!(words[..], ["1", "1", n] if n.parse::<u32>().is_ok_and(|n| n <= 1514)),
                "{line}"
            );
            segments += 1;
        }
        let _ = std::fs::remove_file(file);
    }
    assert!(segments > 1000, "{segments} segments seen");
}

#[test]
fn shapers_count_segments() {
    let Some(lab) = lab() else { return };
    let (a, r, b) = hosts(&lab);
    let mut new = a.command(castanet());
    new.args(["new", "ip-router", "eth0=10.0.0.1/24", "eth1=10.0.1.1/24"]);
    let text = Process::start(new).wait(Duration::from_secs(200)).good();
    let outward = "queue :: Queue -> ToDevice($dev)";
    assert!(text.contains(outward), "{text}");
    let text = text.replace(outward, "queue :: Queue(30) -> Shaper(1000) -> ToDevice($dev)");
    let _r = Router::run(r, castanet(), &["-e", &text], 2);
    a.run("ping -c 1 -W 60 10.0.1.2").good();
    let mut server = b.spawn("iperf3 -s -1 --forceflush");
    server.wait_for("listening", Duration::from_secs(200));
    let packets = || b.statistic("eth0", "rx/packets");
    let (before, start) = (packets(), Instant::now());
    a.run("iperf3 -c 10.0.1.2 -t 2 -J").good();
    let (sent, time) = (packets() - before, start.elapsed().as_secs_f64());
    assert!(server.wait(Duration::from_secs(200)).ok());
    // The extra 200 packets allow for bursts, such as the segments of one super-packet. If each super-packet
    // counted as one packet, far more segments would pass.
    let most = 1000.0 * time + 200.0;
    assert!(sent > 0 && (sent as f64) < most, "{sent} packets in {time} s");
    let bytes = b.statistic("eth0", "rx/bytes") as f64 / b.statistic("eth0", "rx/packets") as f64;
    assert!(bytes < 1515.0, "{bytes} bytes a packet");
}
