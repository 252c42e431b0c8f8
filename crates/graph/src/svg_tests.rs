// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the drawing: well-formed, complete, without overlaps, deterministic.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::layout::overlaps;
use crate::testing::{Random, checked, random_graph};

/// Whether tags are balanced and text is escaped.
fn well_formed(text: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, after) = piece.split_once('>').ok_or("tag without end")?;
        if after.contains('>') {
            return Err(format!("stray '>' in {after}"));
        }
        for amp in after.split('&').skip(1).chain(tag.split('&').skip(1)) {
            if !["amp;", "lt;", "gt;", "quot;"].iter().any(|e| amp.starts_with(e)) {
                return Err(format!("stray '&' in {piece}"));
            }
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes in {tag}"));
        }
        let name = tag.split(' ').next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("open: {open:?}")) }
}

pub(super) const SMALL: &str = "in :: Source(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800, -); c [0] -> Discard; \
     c [1] -> Strip(14) -> q :: Queue(1000) -> out :: Sink(eth1); c [2] -> q; idle :: Idle;";

/// Two interfaces of an IP router, with ICMP errors that are routed again.
pub(super) fn large() -> String {
    let mut text = String::from("rt :: Classifier(18.26.4.24/32 0, 18.26.4.255/32 0, 18.26.4.0/24 1);");
    for i in 0..2 {
        text.push_str(&format!(
            "in{i} :: Source(eth{i}) -> c{i} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -); \
             c{i} [0] -> ar{i} :: Strip(18.26.4.24 00:00:C0:AE:67:EF) -> q{i} :: Queue(200) -> out{i} :: Sink(eth{i}); \
             arpq{i} :: Check(18.26.4.24, 00:00:C0:AE:67:EF) -> q{i}; arpq{i} [1] -> q{i}; \
             c{i} [1] -> arpq{i}; c{i} [2] -> Counter -> Strip(14) -> CheckIPHeader{i} :: Check(18.26.4.255) -> rt; \
             CheckIPHeader{i} [1] -> Discard; c{i} [3] -> Print(\"eth{i} <other> & more\") -> Discard;"
        ));
    }
    text.push_str("rt [0] -> Counter -> ToHost :: Discard;");
    for i in 0..2 {
        text.push_str(&format!(
            "rt [{}] -> db{i} :: Counter -> cp{i} :: Tee; cp{i} [0] -> gio{i} :: Check(18.26.4.24) -> FixIPSrc{i} :: Strip \
             -> dt{i} :: Check -> fr{i} :: Check(1500) -> arpq{i}; cp{i} [1] -> r{i} :: Strip(redirect, host) -> rt; \
             gio{i} [1] -> pp{i} :: Strip(parameterproblem) -> rt; dt{i} [1] -> te{i} :: Strip(timeexceeded) -> rt; \
             fr{i} [1] -> un{i} :: Strip(unreachable, needfrag) -> rt;",
            i + 1
        ));
    }
    text.push_str("ScheduleInfo@9 :: Idle(in0 1, in1 1); AddressInfo@3 :: Idle(a 1.2.3.4 <b>);");
    text
}

#[test]
fn every_element_and_connection_appears() {
    for text in
        [SMALL.to_string(), large(), String::new(), "s :: Sched; s -> Sink; s -> s; Idle -> [1] s;".into()]
    {
        let (g, ..) = checked(&text);
        let drawing = svg(&g);
        well_formed(&drawing).unwrap();
        assert_eq!(drawing.matches("class=\"edge ").count(), g.flat.connections.len());
        for e in 0..g.len() {
            assert!(drawing.contains(&escaped(&g.declaration(e))), "{}", g.declaration(e));
        }
        assert!(!drawing.contains("NaN") && !drawing.contains("inf "));
        assert_eq!(drawing, svg(&g));
        if let Some(folder) = std::env::var_os("CASTANET_DRAWINGS") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{}.svg", g.len())), drawing).unwrap();
        }
    }
}

#[test]
fn comments_are_not_arguments() {
    let (g, ..) = checked(
        "Idle -> s :: Strip(/* the Ethernet header */ 14 // bytes\n) -> Discard; Idle(a /* b */, \"/* c */\");",
    );
    let drawing = svg(&g);
    assert!(
        !drawing.contains("header") && !drawing.contains("bytes") && !drawing.contains("/* b"),
        "{drawing}"
    );
    assert!(drawing.contains(">14</text>") && drawing.contains("Strip(14)"), "{drawing}");
    assert!(drawing.contains("Idle(a, &quot;/* c */&quot;)"), "{drawing}");
}

#[test]
fn the_legend_explains_every_symbol_and_fits() {
    let (g, ..) = checked(SMALL);
    let drawing = svg(&g);
    assert!(drawing.contains("<title>Click configuration: 7 elements, 6 connections</title>"), "{drawing}");
    for text in [
        "push input, output",
        "pull input, output",
        "agnostic, push here",
        "agnostic, pull here",
        "push connection",
        "pull connection",
        "stores packets",
        "has a task",
        "other element",
        "unknown class",
    ] {
        assert!(drawing.contains(&format!(">{text}</text>")), "{text}");
    }
    let width: f64 = drawing.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    let view = format!("viewBox=\"0 0 {width} ");
    assert!(drawing.contains(&view), "{view}");
    for label in drawing.split("<text class=\"config\" x=\"").skip(1) {
        let x: f64 = label.split('"').next().unwrap().parse().unwrap();
        let text = label.split('>').nth(1).unwrap().split('<').next().unwrap();
        assert!(x + text.chars().count() as f64 * NARROW <= width, "{text}");
    }
}

#[test]
fn boxes_do_not_overlap() {
    let mut random = Random(7);
    for _ in 0..100 {
        let n = 1 + random.below(30);
        let widths: Vec<f64> = (0..n).map(|_| 40.0 + random.below(100) as f64).collect();
        let edges: Vec<Edge> = (0..random.below(3 * n))
            .map(|_| Edge {
                from: random.below(n),
                to: random.below(n),
                from_offset: random.below(30) as f64 - 15.0,
                to_offset: 0.0,
            })
            .collect();
        let l = layout(&widths, &edges);
        assert_eq!(overlaps(&l, &widths), 0);
        for (e, &back) in edges.iter().zip(&l.back) {
            assert!(back || l.layer[e.from] < l.layer[e.to]);
        }
        assert!(l.ways.iter().flatten().all(|w| w.1.is_finite() && w.0 < l.layers));
    }
}

#[test]
fn random_graphs_are_well_formed() {
    let mut random = Random(8);
    for _ in 0..150 {
        let g = random_graph(&mut random, &["Tee", "Joined", "Queue", "Sched", "Strip", "<&\">"]);
        well_formed(&svg(&g)).unwrap();
    }
}

#[test]
fn large_graphs_take_bounded_time() {
    let mut text = String::from("j :: Joined;");
    for i in 0..1500 {
        text.push_str(&format!("s{i} :: Source -> Strip -> [{i}] j;"));
    }
    text.push_str(&format!("j{} -> j;", " -> Counter".repeat(1000)));
    let (g, ..) = checked(&text);
    // The limit only ends a hang. Superlinear growth would take hours.
    let start = std::time::Instant::now();
    well_formed(&svg(&g)).unwrap();
    assert!(start.elapsed().as_secs() < 200, "{:?}", start.elapsed());
}

#[test]
fn text_is_shortened_and_escaped() {
    assert_eq!(shortened("a  b\n c", 10), "a b c");
    assert_eq!(shortened("", 10), "");
    assert_eq!(shortened("abcdefghijk", 5), "abc…");
    assert_eq!(shortened("ab cdefghijk", 6), "ab c…");
    assert_eq!(shortened("ééééééé", 4), "éé…");
    assert_eq!(escaped("a<b>&\"\u{1}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd} ");
}
