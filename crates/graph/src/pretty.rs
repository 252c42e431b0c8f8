// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a configuration as an HTML page: the highlighted source with links and facts about ports, the drawing, and a
//! table of the elements. The page needs no other file, and is valid XML.
//!
//! - `names` finds what each name of the source refers to
//! - `facts` describes elements, ports and connections
//! - `source` writes the source as HTML
//! - `template` fills in the page

mod facts;
mod names;
mod source;
mod template;

use crate::drawing::{Drawing, Fold};
use crate::graph::Graph;
use crate::markup;
use castanet_lang::{FileId, Sources};
use facts::Facts;
use std::fmt::Write as _;

/// The template of [`page`] if no other is given.
pub const TEMPLATE: &str = include_str!("pretty/page.html");
const STYLE: &str = include_str!("pretty/page.css");

/// What a page is made of.
pub struct Settings<'a> {
    /// The template: HTML with tags such as `<? config ?>`.
    pub template: &'a str,
    /// Further tags of the template and their texts, which are HTML. They come before those of [`page`].
    pub defines: &'a [(String, String)],
    /// Returns the address of the documentation of a class.
    pub docs: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns the page of a configuration, and the tags of the template that nothing defines.
///
/// The template's tags are `title`, `style`, `config` (the source), `graph` (the drawing as SVG), `elements` (the table
/// of elements), and those of [`Settings::defines`].
pub fn page(graph: &Graph, sources: &Sources, settings: &Settings<'_>) -> (String, Vec<String>) {
    template::fill(settings.template, |tag| {
        if let Some((_, text)) = settings.defines.iter().find(|d| d.0 == tag) {
            return Some(text.clone());
        }
        Some(match tag {
            "title" => markup::text(sources.name(graph.flat.file)),
            "style" => STYLE.to_string(),
            "config" => config(graph, sources, settings),
            // Only names of compounds to fold can be wrong, and none is given.
            "graph" => {
                Drawing::new(graph, &Fold::None).map_or_else(|e| markup::text(&e.to_string()), |d| d.svg())
            }
            "elements" => elements(graph, settings),
            _ => return None,
        })
    })
}

/// Returns the sources as HTML: the configuration, then its libraries.
fn config(graph: &Graph, sources: &Sources, settings: &Settings<'_>) -> String {
    let facts = Facts::new(graph);
    let main = graph.flat.file;
    let files: Vec<FileId> = std::iter::once(main).chain(sources.files().filter(|f| *f != main)).collect();
    let mut out = String::new();
    for &file in &files {
        if files.len() > 1 {
            let _ = writeln!(out, "<h2>{}</h2>", markup::text(sources.name(file)));
        }
        out.push_str("<div class=\"s-file\"><pre class=\"s-numbers\">");
        for line in 1..=sources.text(file).lines().count() {
            let _ = writeln!(out, "{line}");
        }
        out.push_str("</pre><pre class=\"s-text\">");
        source::source(sources, file, &facts, settings.docs, &mut out);
        out.push_str("</pre></div>\n");
    }
    out
}

/// Returns the table of elements as HTML.
fn elements(graph: &Graph, settings: &Settings<'_>) -> String {
    let facts = Facts::new(graph);
    let mut out = String::from(
        "<table class=\"s-elements\">\n<tr><th>element</th><th>class</th><th>inputs</th><th>outputs</th><th>purpose</th></tr>\n",
    );
    for (e, element) in graph.flat.elements.iter().enumerate() {
        let class = match (settings.docs)(&element.class) {
            Some(url) => {
                format!("<a href=\"{}\">{}</a>", markup::attribute(&url), markup::text(&element.class))
            }
            None => markup::text(&element.class),
        };
        let summary = graph.spec(e).map_or("", |s| s.summary());
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#{}\" title=\"{}\">{}</a></td><td>{class}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            source::anchor(element.span.file, element.span.start),
            markup::attribute(&facts.element(e)),
            markup::text(&element.name),
            facts::kinds(graph.inputs(e), |i| graph.input_kind(e, i)),
            facts::kinds(graph.outputs(e), |o| graph.output_kind(e, o)),
            markup::text(summary)
        );
    }
    out.push_str("</table>\n");
    out
}

#[cfg(test)]
mod tests;
