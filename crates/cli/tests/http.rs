// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of HTTP access to routers: `castanet run --http` and `castanet serve`.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::until;
use common::web::{Served, get, send, serve};
use common::{Bench, Live};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// 12 packets: 5 stay in the queue, and 7 are dropped. The splitters get none.
const ROUTER: &str = "i :: InfiniteSource(LIMIT 12, ACTIVE true) -> c :: Counter -> q :: SimpleQueue(5) -> Idle;
    Idle -> r :: RatedSplitter(100) -> Discard; r [1] -> Discard; Idle -> b :: BandwidthRatedSplitter(80kbps) -> Discard; b [1] -> Discard;";

fn check_metrics(port: u16) {
    until("all packets have come", || {
        get(port, "/metrics")
            .1
            .contains("castanet_handler_count_packets_total{element=\"c\",class=\"Counter\"} 12\n")
    });
    let (head, text) = get(port, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    for field in [kind, "cache-control: no-store", "x-content-type-options: nosniff"] {
        assert!(head.lines().any(|l| l == field), "{field}\n{head}");
    }
    for line in [
        "# TYPE castanet_handler_count_packets counter",
        "# UNIT castanet_handler_count_packets packets",
        "# TYPE castanet_handler_length_packets gauge",
        "castanet_handler_length_packets{element=\"q\",class=\"SimpleQueue\"} 5",
        "castanet_handler_active{element=\"i\",class=\"InfiniteSource\"} 1",
        "castanet_dropped_packets_total{element=\"q\",class=\"SimpleQueue\",reason=\"queue-full\"} 7",
        "castanet_entered_packets_total{element=\"i\",class=\"InfiniteSource\"} 12",
        "castanet_held_packets{element=\"q\",class=\"SimpleQueue\"} 5",
        "castanet_queue_length_packets{element=\"q\"} 5",
        "castanet_queue_capacity_packets{element=\"q\"} 5",
        "castanet_handler_rate_bytes_per_second{element=\"b\",class=\"BandwidthRatedSplitter\"} 10000.0",
        "castanet_handler_rate{element=\"r\",class=\"RatedSplitter\"} 100",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    for state in ["idle", "poll", "work"] {
        let start = format!("castanet_worker_seconds_total{{worker=\"0\",state=\"{state}\"}} ");
        let value = text.lines().find_map(|l| l.strip_prefix(&start)).unwrap();
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn a_router_serves_its_metrics() {
    let b = Bench::new();
    let Served { live: _live, port, .. } =
        serve(&b, "log", &["run", "-q", "--http", "127.0.0.1:0", "-e", ROUTER]);
    check_metrics(port);
    assert!(get(port, "/").1.contains("<title>Castanet</title>"));
    assert!(get(port, "/x").0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_router_is_served_over_its_control_socket() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    c.args(["run", "-q", "-u", "s", "-e", ROUTER]).stdout(Stdio::null());
    let router = Live(c.spawn().unwrap());
    until("the router listens", || b.run("castanet", &["ctl", "s", "read", "version"], "").code == 0);
    let Served { live: _live, port, .. } = serve(&b, "log", &["serve", "s", "--http", "127.0.0.1:0"]);
    check_metrics(port);
    drop(router);
    let (head, text) = get(port, "/metrics");
    assert!(head.starts_with("HTTP/1.1 503 ") && !text.is_empty(), "{head}\n{text}");
}

#[test]
fn requests_that_are_not_right_are_refused() {
    let b = Bench::new();
    let args = ["run", "-q", "--http", "127.0.0.1:0", "--http-host", "router1", "-e", "Idle -> Discard"];
    let Served { live: _live, port, .. } = serve(&b, "log", &args);
    let long = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(100));
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: router1\r\n\r\n", "200"),
        ("GET /metrics HTTP/1.0\r\nHost: router1\r\n\r\n", "200"),
        ("GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: http://example.org\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "200"),
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/9.9\r\n\r\n", "400"),
        ("\u{0}\u{1}\u{2}\r\n\r\n", "400"),
        (&long, "431"),
        (&many, "431"),
    ] {
        let reply = send(port, request.as_bytes());
        let got = reply.split(' ').nth(1).unwrap_or_default();
        let shown: String = request.chars().take(80).collect();
        assert_eq!(got, status, "{shown}\n{reply}");
    }
    let head = send(port, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(send(port, b"PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n").contains("allow: GET, HEAD"));
    // A client that stays silent in its request does not keep others from being served, and is disconnected.
    let mut silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    silent.write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
    assert!(get(port, "/metrics").1.ends_with("# EOF\n"));
    silent.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    assert!(silent.read(&mut [0; 1000]).is_ok(), "the server ends the connection");
}

#[test]
fn addresses_that_other_hosts_can_reach_need_a_list_of_clients() {
    let b = Bench::new();
    let idle = ["-e", "Idle -> Discard"];
    let run = |args: &[&str]| b.run("castanet", &[&["run", "-q"], args, &idle[..]].concat(), "");
    let refused = run(&["--http", "0.0.0.0:0"]);
    let want = "castanet: --http 0.0.0.0:0: other hosts can reach 0.0.0.0; write 127.0.0.1:0 for clients of this host, or \
                name the clients: --http-from NETWORK, for example --http-from 192.0.2.0/24\n";
    assert_eq!((refused.err.as_str(), refused.code), (want, 1));
    for args in [
        &["--http", "9090"][..],
        &["--http-from", "192.0.2.0/24"],
        &["--http", "127.0.0.1:0", "--http-from", "x"],
    ] {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("127.0.0.1:{}", taken.local_addr().unwrap().port());
    let refused = run(&["--http", &at]);
    assert!(refused.code == 1 && refused.err.contains(&format!("--http {at}: ")), "{refused:?}");
    assert_eq!(b.run("castanet", &["serve", "s"], "").code, 2);
    assert_eq!(b.run("castanet", &["serve", "nothing.sock", "--http", "127.0.0.1:0"], "").code, 3);
}

/// Returns the answer of Prometheus to a query.
fn query(port: u16, query: &str) -> serde_json::Value {
    let (_, body) = get(port, &format!("/api/v1/{query}"));
    let end = body.rfind('}').map_or(0, |i| i + 1);
    let begin = body.find('{').unwrap_or(end);
    serde_json::from_str(&body[begin..end]).unwrap_or_default()
}

#[test]
fn prometheus_scrapes_a_router() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        println!("SKIP: prometheus is not installed");
        return;
    }
    let b = Bench::new();
    let Served { live: _live, port, .. } =
        serve(&b, "log", &["run", "-q", "--http", "127.0.0.1:0", "-e", ROUTER]);
    b.file(
        "prometheus.yml",
        &format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: castanet\n    static_configs:\n      - targets: ['127.0.0.1:{port}']\n"
        ),
    );
    // Prometheus does not say which port it got, so take a free one.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut c = Command::new("prometheus");
    c.current_dir(b.folder.path()).args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
    c.arg(format!("--web.listen-address=127.0.0.1:{free}")).stdout(Stdio::null());
    c.stderr(std::fs::File::create(b.path("prometheus.log")).unwrap());
    let _prometheus = Live(c.spawn().unwrap());
    until("prometheus listens", || TcpStream::connect(("127.0.0.1", free)).is_ok());
    let value = |name: &str| {
        let found = query(free, &format!("query?query={name}"));
        found["data"]["result"][0]["value"][1].as_str().map(String::from)
    };
    until("it has scraped", || {
        value("castanet_handler_count_packets_total%7Belement=%22c%22%7D").as_deref() == Some("12")
    });
    assert_eq!(value("castanet_dropped_packets_total%7Breason=%22queue-full%22%7D").as_deref(), Some("7"));
    assert_eq!(value("castanet_queue_length_packets").as_deref(), Some("5"));
    let targets = query(free, "targets");
    let target = &targets["data"]["activeTargets"][0];
    assert_eq!(
        (target["health"].as_str(), target["lastError"].as_str()),
        (Some("up"), Some("")),
        "{targets}"
    );
    let known = query(free, "metadata?metric=castanet_handler_count_packets");
    let known = &known["data"]["castanet_handler_count_packets"][0];
    assert_eq!(
        (known["type"].as_str(), known["unit"].as_str()),
        (Some("counter"), Some("packets")),
        "{known}"
    );
}
