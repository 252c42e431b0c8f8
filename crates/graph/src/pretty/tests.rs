// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the HTML page.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::TestClasses;
use castanet_lang::{NoLibrary, Options, Unknown, load};

/// The graph of a configuration, which may have errors.
fn loaded(text: &str) -> (Graph, Sources) {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    let options =
        Options { classes: &TestClasses, defines: &[], library: &NoLibrary, unknown: Unknown::Opaque };
    let (flat, _) = load(&mut sources, file, &options);
    (Graph::new(flat, &TestClasses).0, sources)
}

fn plain(text: &str, template: &str) -> String {
    let (graph, sources) = loaded(text);
    let settings = Settings { template, defines: &[], docs: &|_| None };
    page(&graph, &sources, &settings).0
}

/// The text of a page without its tags.
fn stripped(html: &str) -> String {
    let text: String = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |p| p.1)).collect();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&#13;", "\r").replace("&amp;", "&")
}

/// The source as HTML, without line numbers.
fn source_of(text: &str) -> String {
    let html = plain(text, "<? config ?>");
    let (_, html) = html.split_once("<pre class=\"s-text\">").unwrap();
    html.strip_suffix("</pre></div>\n").unwrap().to_string()
}

#[test]
fn links_and_facts() {
    let html = source_of("s :: Source -> q :: Queue; q -> u :: Unqueue -> Discard;");
    for part in [
        "<a class=\"s-name\" id=\"f0-0\" title=\"s :: Source",
        "<span class=\"s-push\" title=\"push: s [0] -&gt; [0] q\">-&gt;</span>",
        "<a class=\"s-ref\" href=\"#f0-15\" title=\"q :: Queue",
        "<span class=\"s-pull\" title=\"pull: q [0] -&gt; [0] u\">-&gt;</span>",
        "&#10;output 0: pull, to u [0]",
        "<a class=\"s-class\" id=\"f0-48\" title=\"Discard@4 :: Discard",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    let html = source_of(
        "elementclass Queue { $x | input -> q :: Queue($x, a.b) -> output } Source -> a :: Queue(1) -> { -> b :: Strip -> } -> Sink;\n a [1] -> [0] Sink",
    );
    for part in [
        "<span class=\"s-word\">elementclass</span> <a class=\"s-class\" id=\"f0-13\">Queue</a>",
        "<span class=\"s-variable\">$x</span> | <span class=\"s-word\">input</span>",
        // The class inside its own definition is the one outside the file.
        ":: <a class=\"s-class\">Queue</a>(<span class=\"s-variable\">$x</span>, ",
        "<a class=\"s-ref\" href=\"#f0-77\">a</a>.b)",
        ":: <a class=\"s-class\" href=\"#f0-13\">Queue</a>(1)",
        // Connections through the boundary of a compound, and the compound itself.
        "(1) -&gt; { <span class=\"s-pull\" title=\"@3/b: input 0: pull (agnostic), from a/q [0]\">-&gt;</span> ",
        " } <span class=\"s-pull\" title=\"Sink@4: input 0: pull, from @3/b [0]\">-&gt;</span>",
        " id=\"f0-77\" title=\"a :: Queue&#10;compound of a/q\">a</a>",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
}

#[test]
fn ports_have_facts() {
    let html = source_of("Source -> [0] t :: Tee; t [1] -> Discard; t [0] -> Discard; t [2] -> Discard");
    assert!(
        html.contains("[<span class=\"s-port\" title=\"t: input 0: push, from Source@1 [0]\">0</span>] "),
        "{html}"
    );
    assert!(
        html.contains("[<span class=\"s-port\" title=\"t: output 1: push, to Discard@3 [0]\">1</span>] "),
        "{html}"
    );
}

#[test]
fn configuration_strings() {
    let html = source_of("a :: Print(\"x a.y $v <&\\\" '\" /* a.z */ '$v' a.w, $$ ${v-1}) // <b>\n");
    let want = "(<span class=\"s-text-string\">\"x <a class=\"s-ref\" href=\"#f0-0\">a</a>.y <span class=\"s-variable\">$v</span> \
                &lt;&amp;\\\" '\"</span> <span class=\"s-comment\">/* a.z */</span> <span class=\"s-text-string\">'$v'</span> \
                <a class=\"s-ref\" href=\"#f0-0\">a</a>.w, $$ <span class=\"s-variable\">${v-1}</span>) \
                <span class=\"s-comment\">// &lt;b&gt;</span>\n";
    assert!(html.ends_with(want), "{html}");
}

#[test]
fn the_text_is_complete() {
    for text in [
        "",
        "a",
        "a ->",
        "{{(",
        "a :: B(\"x",
        "a :: B('x\\",
        "\r\n# 1 \"<\"\r\nä :: é -> <script>",
        "a[0]->[1,2]b;a,b::C(d/e.f a.g)",
    ] {
        assert_eq!(stripped(&source_of(text)), text, "{text}");
    }
}

#[test]
fn hostile_texts_stay_text() {
    let bad = "</pre><script>alert('x')</script>&\"";
    let text = format!("a :: Print({bad}) -> Tee('{bad}'); // {bad}\nb :: <x>");
    let html = plain(&text, TEMPLATE);
    assert_eq!(html.matches("<script>alert").count(), 0, "{html}");
    assert!(html.contains("&lt;script&gt;alert"));
}

#[test]
fn templates_and_docs() {
    let (graph, sources) = loaded("Source -> Discard");
    let defines = [("x".to_string(), "<b>".to_string()), ("title".to_string(), "T".to_string())];
    let docs = |class: &str| (class == "Source").then(|| format!("doc?a=1&c={class}"));
    let settings =
        Settings { template: "<? title ?><? x ?><? y ?><? elements ?>", defines: &defines, docs: &docs };
    let (html, unknown) = page(&graph, &sources, &settings);
    assert!(html.starts_with("T<b><table"), "{html}");
    assert!(
        html.contains("<td><a href=\"doc?a=1&amp;c=Source\">Source</a></td><td></td><td>1 push</td>"),
        "{html}"
    );
    assert_eq!(unknown, ["y"]);
}

#[test]
fn large_configurations() {
    let chain = "Tee -> ".repeat(20_000);
    let html = plain(&format!("Source -> {chain} Discard"), "<? config ?>");
    assert_eq!(html.matches("<a class=\"s-class\" id=").count(), 20_002);
    let deep = format!("{}a{}", "{->(".repeat(25), ")}".repeat(25));
    assert_eq!(stripped(&source_of(&deep)), deep);
}

/// A configuration with compounds, whose names and texts need escapes.
const HOSTILE: &str = "elementclass C { $x | input -> q :: Queue(\"<$x&\") -> output } /* --> <? config ?> ]]> */
    Source(]]> & '\"' \u{1}) -> c :: C(\u{10ffff}) -> Unqueue -> { -> <t> Tee -> } -> Discard; a, b :: Strange(1); c [0] -> [0] C";

#[test]
fn pages_are_valid_xml_and_links_lead_somewhere() {
    for text in [HOSTILE, "", "a -> ", "Source -> t :: Tee -> Discard; DriverManager(print t.x)"] {
        let html = plain(text, TEMPLATE);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document =
            roxmltree::Document::parse_with_options(&html, options).unwrap_or_else(|e| panic!("{e}\n{html}"));
        let all = || document.descendants();
        let ids: Vec<&str> = all().filter_map(|n| n.attribute("id")).collect();
        let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{html}");
        for link in all().filter(|n| n.tag_name().name() == "a").filter_map(|n| n.attribute("href")) {
            assert!(unique.contains(link.trim_start_matches('#')), "{link}\n{html}");
        }
        let scripts = all().filter(|n| n.tag_name().name() == "script").count();
        assert!(scripts <= 1, "{html}");
        let pre = all().find(|n| n.attribute("class") == Some("s-text")).unwrap();
        let shown: String = pre.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
        assert_eq!(shown, text.replace(['\u{1}', '\u{10ffff}'], "\u{fffd}"));
    }
}
