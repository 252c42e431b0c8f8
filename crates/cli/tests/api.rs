// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the HTTP API of routers. Answers are compared with the OpenAPI document.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::until;
use common::schema::errors;
use common::web::{Served, ask, connect, serve};
use common::{Bench, Live};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// 12 packets: 5 stay in the queue, and 7 are dropped. A compound, a handler that can be written, and a name that must be
/// encoded in URLs.
const ROUTER: &str = "elementclass Shaper { $n | input -> q :: SimpleQueue($n) -> output }
    i :: InfiniteSource(LIMIT 12) -> c :: Counter -> s :: Shaper(5) -> Idle;
    Idle -> r :: RatedSplitter(100) -> Discard; r [1] -> Discard;";

/// Starts a router that allows everything.
fn writable(b: &Bench) -> Served {
    let s = serve(b, "log", &["run", "-q", "-R", "--http", "127.0.0.1:0", "--http-write", "-e", ROUTER]);
    assert_eq!(s.token.len(), 32);
    until("all packets have come", || s.get("/api/elements/c/handlers/count")["value"] == 12);
    s
}

/// Checks a value against a schema of the document.
fn valid(document: &Value, schema: &Value, value: &Value, what: &str) {
    let errors = errors(document, schema, value);
    assert!(errors.is_empty(), "{what}: {errors:?}\n{value}");
}

fn schema_of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[test]
fn the_document_describes_every_route_and_its_answers() {
    let b = Bench::new();
    let s = writable(&b);
    let document = s.get("/api/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let mut used: Vec<String> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let real = path.replace("{element}", "s%2Fq").replace("{handler}", "reset_counts");
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let (mut real, mut body) = (real.clone(), Value::Null);
            match operation["operationId"].as_str().unwrap() {
                "read" => real = real.replace("reset_counts", "capacity"),
                "readGlobal" => real = real.replace("reset_counts", "version"),
                // A write of a global handler that changes nothing.
                "writeGlobal" => {
                    (real, body) = (real.replace("reset_counts", "profile"), json!({ "value": "false" }))
                }
                "write" => (real, body) = (real.replace("s%2Fq", "c"), json!({ "value": "" })),
                "check" | "plan" | "swap" => body = json!({ "configuration": ROUTER }),
                "trace" | "endTrace" => {
                    let (_, trace) = s.ask("POST", "/api/traces", &json!({}));
                    real = real.replace("{trace}", trace["trace"].as_str().unwrap());
                }
                "beginTrace" => body = json!({ "filter": "udp", "packets": 3 }),
                "graph" => real = "/api/graph?fold=s".into(),
                "events" => real = String::new(),
                _ => {}
            }
            if real.is_empty() {
                continue;
            }
            if !body.is_null() {
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                valid(&document, schema, &body, path);
                assert!(operation["security"].is_array(), "{path}: what has a body needs the token");
            }
            if operation["security"].is_array() {
                let (status, answer) =
                    ask(s.port, &method, &real, &[("Content-Type", "application/json")], &body.to_string());
                assert_eq!(status, 401, "{method} {real}: {answer}");
            }
            let good = &operation["responses"]["200"]["content"];
            let (kind, content) = good.as_object().unwrap().iter().next().unwrap();
            let token = format!("Bearer {}", s.token);
            let fields = [("Content-Type", "application/json"), ("Authorization", &token)];
            let text = if body.is_null() { String::new() } else { body.to_string() };
            let (status, answer) = ask(s.port, &method, &real, &fields, &text);
            assert_eq!(status, 200, "{method} {real}: {answer}");
            if kind == "application/json" {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                valid(&document, &content["schema"], &answer, path);
                used.extend(content["schema"]["$ref"].as_str().map(String::from));
            }
            // An unknown element or handler is an error of the schema `Problem`.
            let wrong = real.replace("s%2Fq", "none").replace("version", "none");
            if wrong != real {
                let (status, answer) = s.ask(&method, &wrong, &body);
                let failure = &operation["responses"]["default"]["content"]["application/json"]["schema"];
                assert_eq!(status, 404, "{method} {wrong}: {answer}");
                valid(&document, failure, &answer, path);
            }
        }
    }
    assert!(used.len() > 12, "{used:?}");
    // What the document does not have, the server does not have.
    for path in ["/api", "/api/", "/api/element", "/api/elements/c/handlers", "/page/none.js", "/api/swap"] {
        let (status, answer) = ask(s.port, "GET", path, &[], "");
        let want = if path == "/api/swap" { 405 } else { 404 };
        assert_eq!(status, want, "{path} {answer}");
    }
}

#[test]
fn a_wrong_answer_would_be_noticed() {
    let b = Bench::new();
    let s = writable(&b);
    let document = s.get("/api/openapi.json");
    let good = s.get("/api/queues");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut answer = good.clone();
        change(&mut answer);
        errors(&document, &schema_of("QueueList"), &answer).len()
    };
    assert_eq!(wrong(&|_| {}), 0);
    assert_eq!(wrong(&|a| a["queues"][0]["length"] = json!("5")), 1);
    assert_eq!(wrong(&|a| a["queues"][0]["length"] = json!(-1)), 1);
    assert_eq!(wrong(&|a| a["queues"][0]["more"] = json!(1)), 1);
    assert_eq!(wrong(&|a| drop(a["queues"][0].as_object_mut().unwrap().remove("element"))), 1);
    assert_eq!(wrong(&|a| drop(a.as_object_mut().unwrap().remove("held"))), 1);
    assert_eq!(wrong(&|a| a["queues"] = json!({})), 1);
}

#[test]
fn packets_are_followed() {
    const ROUTER: &str = "RatedSource(RATE 200) -> s :: Strip(14) -> q :: Queue -> u :: Unqueue -> t :: Tee;
        t -> x :: Discard; t [1] -> MarkIPHeader -> c :: CheckLength(5) -> Discard;";
    let b = Bench::new();
    let s = serve(&b, "log", &["run", "-q", "--http", "127.0.0.1:0", "--http-write", "-e", ROUTER]);
    let begin = |body: Value| s.ask("POST", "/api/traces", &body);
    for (body, want) in [
        (json!({ "packets": 0 }), 400),
        (json!({ "packets": 101 }), 400),
        (json!({ "packets": "1" }), 400),
        (json!({ "filter": 1 }), 400),
        (json!({ "filter": "ip proto nothing" }), 422),
    ] {
        assert_eq!(begin(body.clone()).0, want, "{body}");
    }
    let name = begin(json!({ "packets": 2 })).1["trace"].as_str().unwrap().to_string();
    let path = format!("/api/traces/{name}");
    until("two packets have been followed", || s.ask("GET", &path, &Value::Null).1["over"] == true);
    let (_, trace) = s.ask("GET", &path, &Value::Null);
    assert_eq!(s.ask("GET", &path, &Value::Null).1, trace, "readings can be repeated");
    assert_eq!((&trace["chosen"], &trace["wanted"], &trace["lost"]), (&json!(2), &json!(2), &json!(0)));
    let packets = trace["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 2);
    assert!(packets.iter().all(|p| p["is_whole"] == true), "{trace}");
    let steps = packets[1]["steps"].as_array().unwrap();
    let of =
        |element: &str, event: &str| steps.iter().find(|s| s["element"] == element && s["event"] == event);
    let strip = of("s", "out").unwrap();
    assert_eq!((&strip["output"], &strip["class"]), (&json!(0), &json!("Strip")));
    assert_eq!(strip["text"], "to [0]; 14 bytes stripped");
    assert_eq!(of("q", "held").unwrap()["output"], Value::Null);
    assert!(of("q", "out").unwrap()["text"].as_str().unwrap().contains("held for"), "{trace}");
    assert_eq!(of("t", "made").unwrap()["output"], 1, "the copy is followed too");
    let dropped = of("c", "dropped").unwrap();
    assert!(dropped["text"].as_str().unwrap().starts_with("DROPPED: "), "{dropped}");
    assert_eq!(s.ask("DELETE", &path, &Value::Null).0, 200);
    for path in [path.as_str(), "/api/traces/0123", "/api/traces/no%20name"] {
        assert_eq!(s.ask("GET", path, &Value::Null).0, 404, "{path}");
    }
}

#[test]
fn the_answers_are_those_of_the_router() {
    let b = Bench::new();
    let s = writable(&b);
    let router = s.get("/api/router");
    assert_eq!(
        (&router["writable"], &router["authorised"], &router["reconfigurable"]),
        (&json!(true), &json!(true), &json!(true))
    );
    assert_eq!(
        s.get("/api/drops")["drops"][0],
        json!({
            "element": "s/q", "class": "SimpleQueue", "reason": "queue-full", "packets": 7, "rate": null
        })
    );
    assert_eq!(s.get("/api/queues")["queues"], json!([{ "element": "s/q", "length": 5, "capacity": 5 }]));
    assert_eq!(s.get("/api/workers")["workers"][0]["worker"], 0);
    let element = s.get("/api/elements/s%2Fq");
    assert_eq!((&element["class"], &element["configuration"]), (&json!("SimpleQueue"), &json!("5")));
    let length = element["handlers"].as_array().unwrap().iter().find(|h| h["name"] == "length").unwrap();
    assert_eq!(
        (&length["kind"], &length["unit"], &length["writable"]),
        (&json!("gauge"), &json!("packets"), &json!(false))
    );
    let graph = s.get("/api/graph");
    assert_eq!(graph["compounds"], json!(["s"]));
    let names = |g: &Value| -> Vec<String> {
        let boxes = g["drawing"]["boxes"].as_array().unwrap().iter();
        boxes.map(|b| b["element"].as_str().or(b["compound"].as_str()).unwrap().to_string()).collect()
    };
    assert!(names(&graph).contains(&"s/q".to_string()), "{graph}");
    let folded = s.get("/api/graph?fold=s&fold=gone");
    assert!(names(&folded).contains(&"s".to_string()) && !names(&folded).contains(&"s/q".to_string()));
    // Every connection is drawn, folded or not.
    for g in [&graph, &folded] {
        let lines = g["drawing"]["lines"].as_array().unwrap().iter();
        let mut drawn: Vec<u64> =
            lines.flat_map(|l| l["connections"].as_array().unwrap()).map(|c| c.as_u64().unwrap()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), g["connections"].as_array().unwrap().len());
    }
    assert_eq!(graph["identity"], folded["identity"]);
    assert_eq!(s.get("/api/configuration")["configuration"], ROUTER);
    assert_eq!(s.get("/api/handlers/version")["text"], "2.1");
}

#[test]
fn writes_need_the_token_and_the_right_request() {
    let b = Bench::new();
    let s = writable(&b);
    let path = "/api/elements/r/handlers/rate";
    let token = format!("Bearer {}", s.token);
    let (json_type, bearer) = (("Content-Type", "application/json"), ("Authorization", token.as_str()));
    let value = r#"{"value":"70"}"#;
    let own = format!("http://localhost:{}", s.port);
    for (fields, body, want) in [
        (&[json_type][..], value, 401),
        (&[json_type, ("Authorization", "Bearer 0123456789abcdef0123456789abcdef")], value, 401),
        (&[json_type, bearer, ("Origin", "http://example.org")], value, 403),
        (&[json_type, bearer, ("Origin", "null")], value, 403),
        (&[json_type, bearer, ("Sec-Fetch-Site", "cross-site")], value, 403),
        (&[bearer, ("Content-Type", "text/plain")], value, 415),
        (&[bearer], value, 415),
        (&[json_type, bearer], "{", 400),
        (&[json_type, bearer], r#"{"value":7}"#, 400),
        (&[json_type, bearer], "", 400),
        (&[json_type, bearer], r#"{"value":"x"}"#, 422),
    ] {
        let (status, answer) = ask(s.port, "PUT", path, fields, body);
        assert_eq!(status, want, "{fields:?} {body} {answer}");
        assert_eq!(s.get(path)["value"], 100, "{fields:?} {body}");
    }
    let (status, answer) = ask(s.port, "PUT", path, &[json_type, bearer, ("Origin", &own)], value);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(s.get(path)["value"], 70);
    let write = |path: &str| s.ask("PUT", path, &json!({ "value": "" })).0;
    assert_eq!(write("/api/elements/none/handlers/rate"), 404);
    assert_eq!(write("/api/elements/r/handlers/none"), 404);
    assert_eq!(write("/api/handlers/c.reset_counts"), 404);
    // A body that is too large is refused before it is read.
    let large = format!(
        "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: {token}\r\nContent-Length: 99999999\r\n\r\n"
    );
    assert!(common::web::send(s.port, large.as_bytes()).starts_with("HTTP/1.1 413 "));
}

#[test]
fn a_server_is_read_only_unless_it_is_told_otherwise() {
    let b = Bench::new();
    let s = serve(&b, "log", &["run", "-q", "-R", "--http", "127.0.0.1:0", "-e", ROUTER]);
    assert_eq!(s.token, "");
    assert_eq!(s.get("/api/router")["writable"], false);
    for (method, path, body) in [
        ("PUT", "/api/elements/r/handlers/rate", json!({ "value": "1" })),
        ("PUT", "/api/handlers/stop", json!({ "value": "" })),
        ("POST", "/api/check", json!({ "configuration": "Idle" })),
        ("POST", "/api/plan", json!({ "configuration": "Idle" })),
        ("POST", "/api/swap", json!({ "configuration": "Idle -> Discard" })),
    ] {
        let (status, answer) = s.ask(method, path, &body);
        assert_eq!(status, 403, "{path} {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("--http-write"), "{answer}");
    }
    assert_eq!(s.get("/api/elements/r/handlers/rate")["value"], 100);
}

#[test]
fn configurations_are_checked_planned_and_swapped() {
    let b = Bench::new();
    let s = writable(&b);
    let check = |text: &str| s.ask("POST", "/api/check", &json!({ "configuration": text })).1;
    let wrong = check("Idle -> c :: Coutner -> Discard;");
    assert_eq!(wrong["errors"], 1, "{wrong}");
    assert_eq!(wrong["diagnostics"][0]["spans"][0]["byte_start"], 13);
    assert!(wrong["diagnostics"][0]["rendered"].as_str().unwrap().contains("Counter"), "{wrong}");
    let many = check(&(0..150).map(|i| format!("Idle -> Unknown{i} -> Discard; ")).collect::<String>());
    assert_eq!(many["diagnostics"].as_array().unwrap().len(), 100);
    assert_eq!(many["more"].as_u64(), many["errors"].as_u64().map(|n| n - 100), "{many}");
    b.file("secret.click", "elementclass Secret { input -> output }");
    // A configuration of a client reads no file.
    let files = check("require(library secret.click) Idle -> Secret -> Discard;");
    assert!(files["errors"].as_u64().unwrap() > 0, "{files}");
    assert_eq!(check(ROUTER)["errors"], 0);
    let next = ROUTER.replace("Shaper(5)", "Shaper(9)");
    let (status, plan) = s.ask("POST", "/api/plan", &json!({ "configuration": next }));
    assert_eq!(status, 200, "{plan}");
    assert!(
        plan["changes"].as_array().unwrap().iter().any(|c| c.as_str().unwrap().starts_with("~ s/q")),
        "{plan}"
    );
    assert_eq!(s.get("/api/elements/s%2Fq/handlers/capacity")["value"], 5);
    let (status, refused) = s.ask("POST", "/api/swap", &json!({ "configuration": "Idle -> -> Discard" }));
    assert_eq!(status, 422, "{refused}");
    let before = s.get("/api/graph")["identity"].clone();
    let (status, swapped) =
        s.ask("POST", "/api/swap", &json!({ "configuration": next.replace("Idle;", "Null -> Idle;") }));
    assert_eq!(status, 200, "{swapped}");
    assert_eq!(s.get("/api/elements/s%2Fq/handlers/capacity")["value"], 9);
    assert_eq!(s.get("/api/elements/s%2Fq/handlers/length")["value"], 5, "the packets stay");
    assert_ne!(s.get("/api/graph")["identity"], before);
    drop(s);
    let s = serve(&b, "log2", &["run", "-q", "--http", "127.0.0.1:0", "--http-write", "-e", ROUTER]);
    let (status, answer) = s.ask("POST", "/api/swap", &json!({ "configuration": ROUTER }));
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("run -R"));
}

/// Subscribes to events.
fn events(port: u16) -> BufReader<std::net::TcpStream> {
    let mut stream = connect(port);
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    BufReader::new(stream)
}

/// Returns the next event: its name and its data.
fn next(events: &mut BufReader<std::net::TcpStream>) -> (String, Value) {
    let mut name = String::new();
    for line in events.lines() {
        let line = line.unwrap();
        if let Some(n) = line.strip_prefix("event: ") {
            name = n.to_string();
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).unwrap());
        }
    }
    panic!("the stream ended");
}

#[test]
fn readings_are_streamed_until_the_router_ends() {
    let b = Bench::new();
    let s = writable(&b);
    let document = s.get("/api/openapi.json");
    let mut all = events(s.port);
    let (name, first) = next(&mut all);
    assert_eq!(name, "reading");
    valid(&document, &schema_of("Reading"), &first, "the first reading");
    assert_eq!(first["seconds"], Value::Null);
    assert_eq!(first["identity"], s.get("/api/graph")["identity"]);
    let (_, second) = next(&mut all);
    valid(&document, &schema_of("Reading"), &second, "the second reading");
    assert!(second["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(second["drops"][0]["packets"], 7);
    // Nothing passes any more, and that follows from the ledger for every connection but those of RatedSplitter.
    let connections = s.get("/api/graph")["connections"].as_array().unwrap().len();
    let rates = second["rates"].as_array().unwrap();
    assert_eq!(rates.len(), connections);
    assert!(
        rates.iter().any(|r| r == &json!(0.0)) && rates.iter().all(|r| r.is_null() || r == &json!(0.0)),
        "{rates:?}"
    );
    // A swap changes the identity.
    let (status, _) = s.ask("POST", "/api/swap", &json!({ "configuration": "Idle -> Null -> Discard;" }));
    assert_eq!(status, 200);
    until("the swap is seen", || next(&mut all).1["identity"] != first["identity"]);
    // There are at most 16 streams.
    let others: Vec<_> = (0..15).map(|_| events(s.port)).collect();
    let mut others: Vec<_> = others
        .into_iter()
        .map(|mut e| {
            assert_eq!(next(&mut e).0, "reading");
            e
        })
        .collect();
    let (status, answer) = ask(s.port, "GET", "/api/events", &[], "");
    assert_eq!(status, 503, "{answer}");
    drop(others.pop());
    until("a place is free again", || {
        let mut line = String::new();
        events(s.port).read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200 ")
    });
    let (status, _) = s.ask("PUT", "/api/handlers/stop", &json!({ "value": "" }));
    assert!(status == 200 || status == 503, "{status}");
    until("the end is told", || next(&mut all).0 == "end");
}

#[test]
fn a_router_is_asked_over_its_control_socket() {
    let b = Bench::new();
    let mut c = b.command("castanet");
    c.args(["run", "-q", "-R", "-u", "s", "-e", ROUTER]).stdout(Stdio::null());
    let router = Live(c.spawn().unwrap());
    until("the router listens", || b.run("castanet", &["ctl", "s", "read", "version"], "").code == 0);
    let s = serve(&b, "log", &["serve", "s", "--http", "127.0.0.1:0", "--http-write"]);
    until("all packets have come", || s.get("/api/elements/c/handlers/count")["value"] == 12);
    let document = s.get("/api/openapi.json");
    for (path, schema) in [
        ("router", "Router"),
        ("elements", "Elements"),
        ("graph", "Graph"),
        ("elements/s%2Fq", "Element"),
        ("drops", "DropList"),
    ] {
        valid(&document, &schema_of(schema), &s.get(&format!("/api/{path}")), path);
    }
    assert_eq!(s.get("/api/graph")["compounds"], json!(["s"]));
    let (status, answer) = s.ask("PUT", "/api/elements/r/handlers/rate", &json!({ "value": "7" }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(s.get("/api/elements/r/handlers/rate")["value"], 7);
    let (status, refused) = s.ask("PUT", "/api/elements/r/handlers/rate", &json!({ "value": "x" }));
    assert_eq!(status, 422, "{refused}");
    let (status, plan) = s.ask("POST", "/api/plan", &json!({ "configuration": "Idle -> Discard" }));
    assert!(status == 200 && !plan["changes"].as_array().unwrap().is_empty(), "{plan}");
    let mut all = events(s.port);
    assert_eq!(next(&mut all).0, "reading");
    drop(router);
    until("the trouble is told", || next(&mut all).0 == "trouble");
    assert_eq!(s.ask("GET", "/api/router", &Value::Null).0, 503);
}
