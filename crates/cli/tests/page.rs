// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the page in a real browser.
//!
//! With CASTANET_BLESS=1, `pictures_of_the_page` writes the pictures in docs/.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::until;
use common::Bench;
use common::browser::{Browser, DOWN, ENTER, TAB, UP, has_browser};
use common::web::{Served, serve};
use serde_json::json;
use std::fmt::Write as _;

/// A compound, a full queue, and packets that come all the time and are dropped.
const ROUTER: &str = "elementclass Shaper { $n | input -> q :: SimpleQueue($n) -> output }
i :: RatedSource(RATE 200) -> c :: Counter -> s :: Shaper(5) -> u :: RatedUnqueue(50) -> d :: Discard;
Idle -> r :: RatedSplitter(100) -> Discard; r [1] -> Discard;
";

fn router(b: &Bench, options: &[&str], text: &str) -> Served {
    b.file("router.click", text);
    serve(b, "log", &[&["run", "-q", "--http", "127.0.0.1:0"], options, &["router.click"]].concat())
}

fn open(s: &Served, dark: bool) -> Browser {
    let browser = Browser::new(dark);
    browser.open(&format!("http://127.0.0.1:{}/#token={}", s.port, s.token));
    browser.until("the page is live", "return document.getElementById('state').textContent === 'Live'");
    browser
}

const SWAPS: &[&str] = &["-R", "--http-write"];

#[test]
fn the_graph_is_drawn_live() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = open(&s, false);
    assert_eq!(w.run("return document.querySelectorAll('#sheet .box').length"), json!(9));
    assert!(
        !w.run("return location.href").as_str().unwrap().contains("token"),
        "the token leaves the address bar"
    );
    w.until(
        "rates are shown",
        "return [...document.querySelectorAll('text.rate')].some((t) => t.textContent.endsWith('/s'))",
    );
    w.until("the queue is full", "return document.querySelector('.fill.full') !== null");
    w.until(
        "drops are shown",
        "return document.querySelector('.dropping .badge text')?.textContent.endsWith('/s')",
    );
    w.until("and in the head", "return document.querySelector('#figure-drops.bad') !== null");
    w.until(
        "lines are thicker where packets pass",
        "const all = [...document.querySelectorAll('.line')].map((l) => parseFloat(getComputedStyle(l).strokeWidth)); \
         return Math.max(...all) > 2.3 && Math.min(...all) < 1.5",
    );
    // Folded, the compound shows the drops of its element.
    w.click(".band");
    w.until("the compound is folded", "return document.querySelector('#sheet .box.folded') !== null");
    assert_eq!(w.run("return document.querySelectorAll('#sheet .box').length"), json!(9));
    w.until("it shows drops", "return document.querySelector('#sheet .box.folded.dropping') !== null");
    w.click("#sheet [aria-expanded=false]");
    w.until("it is open again", "return document.querySelector('.band') !== null");
    assert_eq!(w.messages(), [""; 0]);
    drop(s);
    w.until("the end is seen", "return document.getElementById('state').dataset.kind !== 'live'");
}

#[test]
fn handlers_are_read_and_written() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = open(&s, false);
    w.click("[data-element=r]");
    w.until("the element is shown", "return document.querySelector('.details h2')?.textContent === 'r'");
    let row = "[...document.querySelectorAll('.handlers tr')].find((r) => r.querySelector('th')?.firstChild.textContent === 'rate')";
    w.until("its rate is read", &format!("return {row}?.querySelector('.value')?.textContent === '100'"));
    w.run(&format!("{row}.querySelector('input').id = 'rate'"));
    w.type_into("#rate", &format!("7{ENTER}"));
    w.until("its rate is written", &format!("return {row}?.querySelector('.value')?.textContent === '7'"));
    assert_eq!(s.get("/api/elements/r/handlers/rate")["value"], 7);
    w.clear("#rate");
    w.type_into("#rate", &format!("x{ENTER}"));
    w.until("the refusal is shown", "return document.querySelector('.said.error')?.textContent !== ''");
    // A button.
    w.click("[data-element=c]");
    w.until("the counter is shown", "return document.querySelector('.details h2')?.textContent === 'c'");
    let before = s.get("/api/elements/c/handlers/count")["value"].as_u64().unwrap();
    assert!(before > 0);
    w.run("[...document.querySelectorAll('.handlers tr')].find((r) => r.querySelector('th')?.textContent === 'reset_counts').querySelector('button').click()");
    w.until(
        "the answer is shown",
        "return document.querySelector('.said')?.textContent.includes('reset_counts')",
    );
    assert_eq!(w.messages().len(), 1, "the refusal, which the browser reports too: {:?}", w.messages());
}

#[test]
fn a_page_without_the_token_writes_nothing() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = Browser::new(false);
    w.open(&format!("http://127.0.0.1:{}/", s.port));
    w.until("the page is live", "return document.getElementById('state').textContent === 'Live'");
    w.click("[data-element=r]");
    w.until("the element is shown", "return document.querySelector('.details h2')?.textContent === 'r'");
    assert_eq!(w.run("return document.querySelectorAll('.handlers input, .handlers button').length === 0 || [...document.querySelectorAll('.handlers button')].every((b) => b.textContent === 'Read')"), json!(true));
    assert!(w.text(".details").contains("open the link with the token"));
    w.click("#tab-configuration");
    w.until(
        "the configuration is shown",
        "return document.getElementById('text').value.includes('elementclass')",
    );
    assert_eq!(
        w.run("return document.getElementById('text').readOnly && document.getElementById('swap').hidden"),
        json!(true)
    );
    // A link with a token that is not right is as good as none.
    w.open(&format!("http://127.0.0.1:{}/#token=0123456789abcdef", s.port));
    w.run("location.reload()");
    w.until("the page is live", "return document.getElementById('state').textContent === 'Live'");
    assert!(w.text("#figure-rights").starts_with("read;"), "{}", w.text("#figure-rights"));
}

#[test]
fn a_configuration_is_edited_and_swapped() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = open(&s, false);
    w.click("#tab-configuration");
    w.until(
        "the configuration is shown",
        "return document.getElementById('text').value.includes('elementclass')",
    );
    let type_text = |text: &str| {
        let script = format!(
            "const t = document.getElementById('text'); t.value = {}; t.dispatchEvent(new Event('input'))",
            json!(text)
        );
        w.run(&script);
    };
    type_text(&ROUTER.replace("Counter", "Coutner"));
    w.until(
        "the mistake is shown",
        "return document.querySelector('.diagnostics .error')?.textContent.includes('Coutner')",
    );
    assert_eq!(w.text(".paint .mark"), "Coutner");
    assert!(w.text("#summary").starts_with("1 error"));
    assert_eq!(w.run("return document.getElementById('swap').disabled"), json!(true));
    w.click(".diagnostics .link");
    assert_eq!(w.run("const t = document.getElementById('text'); return t.value.slice(t.selectionStart, t.selectionEnd)"), json!("Coutner"));
    type_text(&ROUTER.replace("Shaper(5)", "Shaper(9)").replace("-> d ::", "-> extra :: Null -> d ::"));
    w.until(
        "the plan is shown",
        "return document.querySelector('.plan .changed')?.textContent.includes('s/q')",
    );
    assert!(w.text(".plan .added").contains("extra"), "{}", w.text(".plan"));
    assert_eq!(s.get("/api/elements/s%2Fq/handlers/capacity")["value"], 5, "it is only a plan");
    w.click("#swap");
    until("the router has swapped", || s.get("/api/elements/s%2Fq/handlers/capacity")["value"] == 9);
    w.until("that is said", "return document.querySelector('.side .said').textContent !== ''");
    w.click("#tab-graph");
    w.until("the new element is drawn", "return document.querySelector('[data-element=extra]') !== null");
    assert_eq!(w.messages(), [""; 0]);
}

#[test]
fn the_page_is_used_by_keyboard_and_by_ear() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = open(&s, false);
    w.until("the queue is full", "return document.querySelector('.fill.full') !== null");
    w.until("a queue is described", "return document.querySelector('[data-element=\"s/q\"]').getAttribute('aria-label').includes('5 of 5')");
    let (role, name) = w.spoken("[data-element=\"s/q\"]");
    assert_eq!(role, "button");
    assert!(name.contains("s/q :: SimpleQueue(5), 5 of 5 packets"), "{name}");
    assert_eq!(w.spoken("#tab-tables"), ("tab".into(), "Tables".into()));
    assert_eq!(w.spoken(".band").1, "Compound s, 1 element, fold");
    // Tab reaches the drawing once, arrows move in it.
    w.run("document.getElementById('zoom-in').focus()");
    w.press(&[TAB]);
    until("the drawing has the focus", || {
        w.run("return document.activeElement.closest('#sheet') !== null") == json!(true)
    });
    w.run("document.querySelector('[data-element=i]').focus()");
    w.press(&[DOWN]);
    assert_eq!(w.run("return document.activeElement.dataset.element"), json!("c"));
    assert_eq!(w.run("return document.querySelectorAll('#sheet [tabindex=\"0\"]').length"), json!(1));
    assert_eq!(
        w.run("return getComputedStyle(document.activeElement.querySelector('.body')).strokeWidth"),
        json!("3.4px"),
        "the focus is visible"
    );
    w.press(&[ENTER]);
    w.until("Enter shows the element", "return document.querySelector('.details h2')?.textContent === 'c'");
    // The tables have all that the drawing has.
    w.click("#tab-tables");
    w.until(
        "tables are shown",
        "return document.querySelectorAll('#view-tables table:not([hidden])').length === 5",
    );
    for text in ["queue-full", "s/q", "SimpleQueue", "RatedUnqueue"] {
        assert!(w.text("#view-tables").contains(text), "{text}");
    }
    let unnamed = w.run(
        "return [...document.querySelectorAll('button, input, textarea, [role]')].filter((e) => !e.closest('[hidden]') \
         && !(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.length)).map((e) => e.outerHTML)",
    );
    assert!(
        unnamed
            .as_array()
            .unwrap()
            .iter()
            .all(|e| e.as_str().unwrap().contains("said") || e.as_str().unwrap().contains("summary")),
        "{unnamed}"
    );
}

#[test]
fn a_packet_is_followed_step_by_step() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, SWAPS, ROUTER);
    let w = open(&s, false);
    w.until("the queue is full", "return document.querySelector('.fill.full') !== null");
    w.click("#trace-packets");
    w.type_into("#trace form input", &format!("ip proto nothing{ENTER}"));
    w.until("the mistake is shown", "return document.querySelector('#trace .said.error') !== null");
    w.clear("#trace form input");
    w.type_into("#trace form input", &format!("-{ENTER}"));
    w.until("packets are listed", "return document.querySelectorAll('.packets li').length === 10");
    // The queue is full most of the time, so that three of four packets are dropped.
    w.until("a packet is dropped", "return document.querySelector('.packets .lost') !== null");
    w.click(".packets .lost button");
    let step = || w.text(".walk output");
    let rings = || w.run("return document.querySelectorAll('.way .visited').length");
    assert!(step().starts_with("Step 1 of "), "{}", step());
    assert!(step().contains(": i entered, to [0]"), "{}", step());
    assert_eq!(rings(), json!(1));
    assert_eq!(w.run("return document.querySelectorAll('.way .passed').length"), json!(1));
    w.click("[aria-label='Step forward']");
    assert!(step().contains(": c to [0]"), "{}", step());
    assert_eq!(rings(), json!(2));
    w.click("[aria-label='Step forward']");
    assert!(step().contains("s/q DROPPED: queue-full"), "{}", step());
    let place = |what: &str| {
        w.run(&format!("const r = document.querySelector('{what}').getBoundingClientRect(); return Math.round(r.x + r.width / 2) + ' ' + Math.round(r.y + r.height / 2)"))
    };
    assert_eq!(
        place("rect.here.lost"),
        place("[data-element=\"s/q\"] .body"),
        "the ring is around the queue"
    );
    assert_eq!(w.run("return document.querySelector('[aria-label=\"Step forward\"]').disabled"), json!(true));
    assert!(
        w.text(".bytes").len() > 20
            || w.run("return document.querySelector('.bytes') === null") == json!(true)
    );
    // By keyboard.
    w.run("document.querySelector('.steps [aria-current]').focus()");
    w.press(&[UP]);
    assert!(step().contains(": c to [0]"), "{}", step());
    assert_eq!(rings(), json!(2));
    assert_eq!(w.run("return document.activeElement.textContent.includes('c')"), json!(true));
    // In a folded compound, the ring is around its box.
    w.press(&[DOWN]);
    w.click(".band");
    w.until("the compound is folded", "return document.querySelector('#sheet .box.folded') !== null");
    assert_eq!(place("rect.here.lost"), place(".box.folded .body"));
    w.click("#trace-packets");
    assert_eq!(w.run("return document.querySelectorAll('.way > *').length"), json!(0));
    assert_eq!(w.messages().len(), 1, "the refusal, which the browser reports too: {:?}", w.messages());
}

/// Returns a configuration of `n` elements in chains.
fn large(n: usize) -> String {
    let mut text = String::new();
    for chain in 0..n / 10 {
        let _ = write!(text, "i{chain} :: InfiniteSource(ACTIVE false)");
        for i in 0..7 {
            let _ = write!(text, " -> c{chain}_{i} :: Counter");
        }
        let _ = writeln!(text, " -> q{chain} :: Queue -> Idle;");
    }
    text
}

#[test]
fn a_thousand_elements_are_drawn() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let s = router(&b, &[], &large(1000));
    let w = open(&s, false);
    assert_eq!(w.run("return document.querySelectorAll('#sheet .box').length"), json!(1000));
    w.until("readings come", "return document.querySelectorAll('.line[data-flow=none]').length > 800");
    w.run(
        "const f = document.getElementById('find'); f.value = 'c77_3'; f.dispatchEvent(new Event('change'))",
    );
    w.until("it is found", "return document.querySelector('.details h2')?.textContent === 'c77_3'");
    w.until("it is in view", "const r = document.querySelector('[data-element=c77_3]').getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight && r.width > 40");
    // Not asserted, because it depends on the machine.
    let ms = w.run("const t = performance.now(); for (let i = 0; i < 10; i += 1) { document.getElementById('zoom-in').click(); document.body.offsetHeight; } return (performance.now() - t) / 10");
    println!("a zoom of 1,000 elements takes {ms} ms");
}

/// Decodes base64, as WebDriver sends pictures.
fn decoded(text: &str) -> Vec<u8> {
    let value = |b: u8| match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for part in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = part.iter().fold(0u32, |sum, &b| sum << 6 | u32::from(value(b))) << (6 * (4 - part.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..part.len()]);
    }
    out
}

#[test]
fn pictures_of_the_page() {
    if !has_browser() {
        return;
    }
    let b = Bench::new();
    let text = include_str!("page/router.click");
    let s = router(&b, SWAPS, text);
    for dark in [false, true] {
        let w = open(&s, dark);
        let scheme = w.run("return matchMedia('(prefers-color-scheme: dark)').matches");
        assert_eq!(scheme, json!(dark));
        let paper = w.run("return getComputedStyle(document.body).backgroundColor");
        assert_eq!(paper == json!("rgb(21, 23, 26)"), dark, "{paper}");
        w.until("drops are shown", "return document.querySelector('.dropping') !== null");
        w.click("[data-element=\"up/q\"]");
        w.until(
            "handlers are read",
            "return [...document.querySelectorAll('.value')].filter((v) => v.textContent).length > 2",
        );
        let name = if dark { "dark" } else { "light" };
        let save = |view: &str| {
            let picture = decoded(&w.picture());
            assert!(picture.starts_with(b"\x89PNG"));
            if std::env::var_os("CASTANET_BLESS").is_some() {
                let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
                std::fs::write(format!("{docs}/web-{view}-{name}.png"), picture).unwrap();
            }
        };
        save("graph");
        if !dark {
            w.click("#trace-packets");
            // One of four packets is dropped.
            w.clear("#trace .count input");
            w.type_into("#trace .count input", &format!("100{ENTER}"));
            w.until("a packet is dropped", "return document.querySelector('.packets .lost') !== null");
            w.click(".packets .lost button");
            w.run("document.querySelector('.steps li:last-child button').click()");
            save("trace");
            w.click("#trace-packets");
            w.click("#tab-configuration");
            w.until("the configuration is shown", "return document.getElementById('text').value !== ''");
            let changed = text
                .replace("Shaper(200", "Shaper(500")
                .replace("-> Discard;", "-> lost :: Counter -> Discard;");
            w.run(&format!("const t = document.getElementById('text'); t.value = {}; t.dispatchEvent(new Event('input'))", json!(changed)));
            w.until("the plan is shown", "return document.querySelector('.plan .changed') !== null");
            save("configuration");
        }
    }
}
