// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual for a terminal: wrapped, aligned, styled. `anstream` removes the styles if the output is not a terminal.

use super::handlers;
use super::words::{self, Parts};
use castanet_spec::ClassSpec;
use std::fmt::Write as _;
use textwrap::core::display_width;

const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// Returns text in bold.
pub fn bold(text: &str) -> String {
    format!("{BOLD}{text}{PLAIN}")
}

/// Appends a paragraph, wrapped. `first` is the indent of its first line, `rest` that of its other lines.
fn paragraph(out: &mut String, text: &str, first: &str, rest: &str, width: usize) {
    let options = textwrap::Options::new(width.max(20)).initial_indent(first).subsequent_indent(rest);
    for line in
        textwrap::wrap(text, options.break_words(false).wrap_algorithm(textwrap::WrapAlgorithm::FirstFit))
    {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Styles code between backticks and text between double stars, and replaces links by their text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let between = |mark: &str| {
            let (inside, after) = rest.strip_prefix(mark)?.split_once(mark)?;
            (!inside.is_empty()).then_some((inside, after))
        };
        if let Some((inside, after)) = between("`") {
            // Each word is styled separately, because a style across a line break would colour the indent.
            let words: Vec<String> = inside.split(' ').map(|w| format!("{CODE}{w}{PLAIN}")).collect();
            out.push_str(&words.join(" "));
            rest = after;
        } else if let Some((inside, after)) = between("**") {
            let words: Vec<String> = inside.split(' ').map(bold).collect();
            out.push_str(&words.join(" "));
            rest = after;
        } else if let Some((text, after)) = link(rest) {
            out.push_str(&inline(text));
            rest = after;
        } else {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or("");
        }
    }
    out
}

/// Parses a link at the start of a text. Returns the link's text, and the rest of the text after the link.
fn link(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!inside.contains(['[', ']', '\n']) && !inside.is_empty()).then_some((inside, after))
}

/// Splits a list item into its marker (`- `, `* `, `1. `) and its text. `None` if the line is not a list
/// item.
fn bullet(line: &str) -> Option<(&str, &str)> {
    let n = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = match line.get(n..)? {
        rest if n > 0 && rest.starts_with(". ") => n + 2,
        rest if n == 0 && (rest.starts_with("- ") || rest.starts_with("* ")) => 2,
        _ => return None,
    };
    Some((line.get(..mark)?, line.get(mark..)?))
}

/// Returns the cells of a table row. `None` for any other line, and for the line below the header.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let hidden = inner.replace("\\|", "\0");
    let all: Vec<String> = hidden.split('|').map(|c| inline(&c.trim().replace('\0', "|"))).collect();
    let rule = all.iter().all(|c| !c.is_empty() && c.chars().all(|c| c == '-' || c == ':'));
    (!rule).then_some(all)
}

/// Renders a subset of Markdown: paragraphs, lists, headings, tables, code blocks.
pub fn markdown(out: &mut String, text: &str, indent: &str, width: usize) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut open: Option<(String, String)> = None;
    let mut fence = false;
    let flush = |open: &mut Option<(String, String)>, out: &mut String| {
        if let Some((mark, text)) = open.take() {
            let (first, rest) = (format!("{indent}{mark}"), format!("{indent}{}", " ".repeat(mark.len())));
            paragraph(out, &inline(&text), &first, &rest, width);
        }
    };
    for line in text.lines() {
        let trimmed = line.trim();
        if !trimmed.starts_with('|') || fence {
            table(out, &std::mem::take(&mut rows), indent, width);
        }
        if trimmed.starts_with("```") {
            flush(&mut open, out);
            fence = !fence;
        } else if fence && !trimmed.is_empty() {
            let _ = writeln!(out, "{indent}  {CODE}{line}{PLAIN}");
        } else if trimmed.is_empty() {
            flush(&mut open, out);
            out.push('\n');
        } else if let Some(title) = trimmed.strip_prefix('#') {
            flush(&mut open, out);
            let _ = writeln!(out, "{indent}{}", bold(title.trim_start_matches('#').trim()));
        } else if trimmed.starts_with('|') {
            flush(&mut open, out);
            rows.extend(cells(trimmed));
        } else if let Some((mark, rest)) = bullet(trimmed) {
            flush(&mut open, out);
            open = Some((mark.to_string(), rest.to_string()));
        } else {
            match &mut open {
                Some((_, text)) => {
                    text.push(' ');
                    text.push_str(trimmed);
                }
                None => open = Some((String::new(), trimmed.to_string())),
            }
        }
    }
    flush(&mut open, out);
    table(out, &rows, indent, width);
}

/// Appends rows with aligned columns. The last column is wrapped.
pub fn table(out: &mut String, rows: &[Vec<String>], indent: &str, width: usize) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| rows.iter().filter_map(|r| r.get(c)).map(|t| display_width(t)).max().unwrap_or(0))
        .collect();
    for row in rows {
        let Some((last, cells)) = row.split_last() else { continue };
        let mut line = indent.to_string();
        for (cell, width) in cells.iter().zip(&widths) {
            // A column that is empty in all rows is left out.
            if *width > 0 {
                let pad = width.saturating_sub(display_width(cell));
                let _ = write!(line, "{cell}{}  ", " ".repeat(pad));
            }
        }
        let hang = " ".repeat(display_width(&line));
        if last.is_empty() {
            let _ = writeln!(out, "{}", line.trim_end());
        } else {
            // At least 30 characters for the last column, even if lines become longer than the terminal.
            paragraph(out, &inline(last), &line, &hang, width.max(display_width(&line) + 30));
        }
    }
}

/// Returns the manual of a class.
pub fn class(spec: &ClassSpec, width: usize) -> String {
    let parts = Parts::of(spec.doc);
    let code = |t: &str| format!("{CODE}{t}{PLAIN}");
    let mut out = String::new();
    let mut head = bold(spec.name);
    if !spec.aliases.is_empty() {
        let _ = write!(head, " (also {})", spec.aliases.join(", "));
    }
    let _ = writeln!(out, "{head}: {}\n", inline(&parts.summary));
    let hang = " ".repeat(spec.name.len() + 3);
    paragraph(&mut out, &words::synopsis(spec), "  ", &hang, width);
    let title = |out: &mut String, t: &str| {
        let _ = writeln!(out, "\n{}", bold(t));
    };
    if !parts.description.is_empty() {
        title(&mut out, "Description");
        markdown(&mut out, &parts.description, "  ", width);
    }
    title(&mut out, "Ports");
    let ports = words::ports(spec);
    let row = |p: &words::Port| {
        let optional = if p.optional { "optional" } else { "" };
        vec![p.which.clone(), p.moves.to_string(), p.packets.clone(), optional.to_string()]
    };
    match ports.is_empty() {
        true => out.push_str("  none\n"),
        false => table(&mut out, &ports.iter().map(row).collect::<Vec<_>>(), "  ", width),
    }
    if let Some(text) = parts.section("Ports") {
        out.push('\n');
        markdown(&mut out, text, "  ", width);
    }
    for (t, text) in parts.sections.iter().filter(|s| s.0 != "Ports" && s.0 != "Example") {
        title(&mut out, t);
        markdown(&mut out, text, "  ", width);
    }
    if !spec.args.is_empty() {
        title(&mut out, "Arguments");
        let row = |a: &castanet_spec::ArgSpec| {
            let default = match (a.mandatory, a.default) {
                (true, _) => "required".to_string(),
                (false, "") => String::new(),
                (false, d) => format!("= {d}"),
            };
            let how = match a.kind {
                castanet_spec::ArgKind::Keyword => "keyword",
                castanet_spec::ArgKind::Positional => "",
                castanet_spec::ArgKind::Rest => "any number",
            };
            vec![code(a.name), a.type_name.to_string(), default, how.to_string(), words::about(a)]
        };
        table(&mut out, &spec.args.iter().map(row).collect::<Vec<_>>(), "  ", width);
    }
    title(&mut out, "Handlers");
    let row = |(name, h): (String, castanet_spec::HandlerSpec)| {
        vec![code(&name), handlers::flags(h.flags), handlers::value(&h), h.doc.to_string()]
    };
    table(&mut out, &handlers::all(spec).into_iter().map(row).collect::<Vec<_>>(), "  ", width);
    title(&mut out, "Behaviour");
    let row = |(t, text): (&str, String)| vec![t.to_string(), text];
    table(&mut out, &words::behaviour(spec).into_iter().map(row).collect::<Vec<_>>(), "  ", width);
    if !spec.drops.is_empty() {
        title(&mut out, "Drop reasons");
        let row = |r: &castanet_spec::Reason| vec![code(r.name()), r.doc().trim().to_string()];
        table(&mut out, &spec.drops.iter().map(row).collect::<Vec<_>>(), "  ", width);
    }
    if let Some(text) = parts.section("Example") {
        title(&mut out, "Example");
        markdown(&mut out, text, "", width);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(BOLD, "").replace(CODE, "").replace(PLAIN, "")
    }

    #[test]
    fn a_subset_of_markdown() {
        for (text, want) in [
            ("one two\nthree four five six", "  one two three four\n  five six\n"),
            ("a `b c` **d**", "  a b c d\n"),
            ("see [`X`](x.html), [1] [a](", "  see X, [1] [a](\n"),
            ("- one two three four five\n- b", "  - one two three four\n    five\n  - b\n"),
            ("10. one two three four", "  10. one two three\n      four\n"),
            (
                "## Head\ntext\n\n```click\na -> b\n\n  -> a very long line of code;\n```\nx",
                "  Head\n  text\n\n    a -> b\n\n      -> a very long line of code;\n  x\n",
            ),
            ("x\n| a | b |\n|---|---|\n| `c\\|d` | e |\ny", "  x\n  a    b\n  c|d  e\n  y\n"),
            ("`", "  `\n"),
            ("a**b", "  a**b\n"),
            ("```\nopen", "    open\n"),
            ("", ""),
        ] {
            let mut out = String::new();
            markdown(&mut out, text, "  ", 22);
            assert_eq!(plain(&out), want, "{text}");
        }
        assert_eq!(inline("`b c`"), format!("{CODE}b{PLAIN} {CODE}c{PLAIN}"));
    }

    #[test]
    fn tables_are_aligned() {
        let rows =
            [vec![bold("a"), String::new(), "b".into()], vec!["ccc".into(), String::new(), String::new()]];
        let mut out = String::new();
        table(&mut out, &rows, "  ", 80);
        assert_eq!(plain(&out), "  a    b\n  ccc\n");
        let mut out = String::new();
        table(&mut out, &[vec!["name".into(), "word ".repeat(12)]], "", 20);
        assert_eq!(out.lines().map(str::len).collect::<Vec<_>>(), [35, 35]);
    }
}
