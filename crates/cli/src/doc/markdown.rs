// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual as Markdown: one class, and the whole element reference.

use super::words::{self, Parts};
use castanet_spec::ClassSpec;
use std::fmt::Write as _;

/// The element reference.
pub fn reference(families: &[(&'static str, Vec<&'static ClassSpec>)]) -> String {
    let mut out = String::from(
        "# Elements\n\nEvery element class, from its declaration. `castanet doc CLASS` shows the same in a terminal. This file is \
         written by\n`castanet doc --markdown`.\n\n",
    );
    for (family, classes) in families {
        let links: Vec<String> =
            classes.iter().map(|s| format!("[{}](#{})", s.name, s.name.to_lowercase())).collect();
        let _ = writeln!(out, "- {}: {}", words::family(family), links.join(", "));
    }
    out.push_str(
        "\nEvery element also has these handlers; `drop_reasons` only those that may drop packets, the last three only those with a task:\n\n| handler | access | |\n|---|---|---|\n",
    );
    use castanet_runtime::handlers::{DROPS, STANDARD, TASK};
    for (name, flags) in STANDARD.iter().chain(DROPS).chain(TASK) {
        row(&mut out, &[&code(name), &words::flags(flags), words::standard(name)]);
    }
    for (family, classes) in families {
        let _ = write!(out, "\n## {}\n", words::family(family));
        for spec in classes {
            out.push('\n');
            out.push_str(&class(spec, 3, false));
        }
    }
    out
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|").replace('\n', " ")).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// One class, under a heading of that level; `all` adds the handlers that every element has.
pub fn class(spec: &ClassSpec, level: usize, all: bool) -> String {
    let parts = Parts::of(spec.doc);
    let mark = "#".repeat(level);
    let mut out =
        format!("{mark} {}\n\n{}\n\n```click\n{}\n```\n", spec.name, parts.summary, words::synopsis(spec));
    if !spec.aliases.is_empty() {
        let names: Vec<String> = spec.aliases.iter().map(|a| code(a)).collect();
        let _ = write!(out, "\nAlso {}.\n", names.join(", "));
    }
    if !parts.description.is_empty() {
        let _ = write!(out, "\n{}\n", parts.description);
    }
    out.push_str("\n| port | moves packets by | packets |\n|---|---|---|\n");
    let ports = words::ports(spec);
    for p in &ports {
        let which = if p.optional { format!("{} (optional)", p.which) } else { p.which.clone() };
        row(&mut out, &[&which, p.moves, &p.packets]);
    }
    if ports.is_empty() {
        row(&mut out, &["none", "", ""]);
    }
    if let Some(text) = parts.section("Ports") {
        let _ = write!(out, "\n{text}\n");
    }
    for (title, text) in parts.sections.iter().filter(|s| s.0 != "Ports" && s.0 != "Example") {
        let _ = write!(out, "\n{mark}# {title}\n\n{text}\n");
    }
    if !spec.args.is_empty() {
        out.push_str("\n| argument | type | default | given | |\n|---|---|---|---|---|\n");
        for a in spec.args {
            row(&mut out, &[&code(a.name), a.type_name, &code(a.default), words::kind(a), &words::about(a)]);
        }
    }
    let standard =
        |name: &str| !words::standard(name).is_empty() && spec.all_handlers().all(|h| h.name != name);
    let handlers: Vec<_> = words::handlers(spec).into_iter().filter(|h| all || !standard(h.name)).collect();
    if !handlers.is_empty() {
        out.push_str("\n| handler | access | value | |\n|---|---|---|---|\n");
        for h in handlers {
            row(&mut out, &[&code(h.name), &words::flags(h.flags), &words::value(&h), h.doc]);
        }
    }
    out.push('\n');
    for (title, text) in words::behaviour(spec) {
        let _ = writeln!(out, "- {title}: {text}");
    }
    for (i, r) in spec.drops.iter().enumerate() {
        let lead = if i == 0 { "- Drops packets for these reasons:\n" } else { "" };
        let _ = writeln!(out, "{lead}  - `{}`: {}", r.name(), r.doc().trim());
    }
    if let Some(text) = parts.section("Example") {
        let _ = write!(out, "\n{text}\n");
    }
    out
}
