// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a configuration: the configuration itself and the libraries it requires. Each is parsed once.

use super::Options;
use super::report::Report;
use crate::archive;
use crate::args;
use crate::bytes::decode;
use crate::diagnostic::Diagnostic;
use crate::read;
use crate::source::{FileId, Sources, Span};
use crate::syntax::ast::{Args, Statement};
use crate::syntax::parse_file;
use std::collections::HashSet;

/// Limit on the number of libraries. Without it, a [`Library`](super::Library) that generates each file on demand
/// could let every file require another one without end.
const MAX_LIBRARIES: usize = 10_000;

/// Archive members as names and data.
type Members = Vec<(String, Vec<u8>)>;

/// The statements at file scope. A library's statements are inserted where it is first required.
#[derive(Default)]
pub(super) struct Files {
    pub statements: Vec<Statement>,
    pub requirements: Vec<(String, String, Span)>,
}

/// Adds bytes as a source: plain text, or an archive whose `config` member is the text. The other members are
/// returned.
pub(super) fn add(sources: &mut Sources, name: &str, bytes: &[u8]) -> (FileId, Members, Vec<Diagnostic>) {
    let (mut text, mut members, mut diagnostics) = (None, Vec::new(), Vec::new());
    if archive::is_archive(bytes) {
        match archive::read(bytes) {
            Ok(all) => {
                for (member, data) in all {
                    if member == "config" && text.is_none() {
                        text = Some(data);
                    } else {
                        members.push((member, data));
                    }
                }
                if text.is_none() {
                    let d = Diagnostic::error(format!("archive '{name}' has no member 'config'"), None);
                    diagnostics.push(d.help("the member 'config' of an archive is the configuration's text"));
                }
            }
            Err(e) => diagnostics.push(Diagnostic::error(format!("bad archive '{name}': {e}"), None)),
        }
        text = Some(text.unwrap_or_default());
    }
    let bytes = text.as_deref().unwrap_or(bytes);
    let file = sources.add(name, decode(bytes).into_owned());
    (file, members, diagnostics)
}

/// Parses `file` and the libraries that it requires.
pub(super) fn read(sources: &mut Sources, file: FileId, options: &Options<'_>, report: &mut Report) -> Files {
    let mut files = Files::default();
    let mut known = HashSet::from([sources.name(file).to_string()]);
    let mut required = HashSet::new();
    let mut total = sources.text(file).len() as u64;
    let parsed = parse_file(sources, file);
    parsed.diagnostics.into_iter().for_each(|d| report.push(d));
    // The remaining statements of each open file, innermost last. This stack replaces recursion, so that a long chain
    // of libraries cannot overflow the call stack.
    let mut open = vec![parsed.statements.into_iter()];
    while let Some(statements) = open.last_mut() {
        let Some(statement) = statements.next() else {
            open.pop();
            continue;
        };
        let Statement::Require(require) = statement else {
            files.statements.push(statement);
            continue;
        };
        let mut libraries = Vec::new();
        for (kind, name, span) in requirements(sources, &require, report) {
            if kind == "library" {
                libraries.push((name, span));
            } else if required.insert((kind.clone(), name.clone())) {
                files.requirements.push((kind, name, span));
            }
        }
        // The stack is popped from the end, so the libraries are pushed in reverse order at the end of this function.
        let mut opened = Vec::new();
        for (name, span) in libraries {
            let from = sources.name(span.file).to_string();
            match options.library.read(&name, &from) {
                Ok((path, _)) if known.contains(&path) => {}
                Ok(_) if known.len() >= MAX_LIBRARIES => {
                    report.error(
                        format!("more than {MAX_LIBRARIES} libraries"),
                        span,
                        "this one exceeds the limit",
                    );
                }
                Ok((_, bytes)) if total.saturating_add(bytes.len() as u64) > read::MAX_CONFIGURATION => {
                    let most = read::MAX_CONFIGURATION >> 20;
                    report.error(
                        format!("configuration and libraries are larger than {most} MiB"),
                        span,
                        "with this library",
                    );
                }
                Ok((path, bytes)) => {
                    known.insert(path.clone());
                    total = total.saturating_add(bytes.len() as u64);
                    let (id, _, diagnostics) = add(sources, &path, &bytes);
                    let parsed = parse_file(sources, id);
                    diagnostics.into_iter().chain(parsed.diagnostics).for_each(|d| report.push(d));
                    opened.push(parsed.statements.into_iter());
                }
                Err(why) => {
                    let d = Diagnostic::error(format!("can't open library '{name}': {why}"), span);
                    report.push(
                        d.at("required here")
                            .help("name the folder that has the library in CLICKPATH, or with -C"),
                    );
                }
            }
        }
        open.extend(opened.into_iter().rev());
    }
    files
}

/// The requirements of a statement as kind, name and position.
pub(super) fn requirements(
    sources: &Sources,
    require: &Args,
    report: &mut Report,
) -> Vec<(String, String, Span)> {
    let Some(config) = require.config else { return Vec::new() };
    let text = sources.snippet(config);
    let mut all = Vec::new();
    for range in args::split(text) {
        let start = config.range().start;
        let span = Span::new(config.file, start + range.start..start + range.end);
        let arg = args::cleaned(text, range);
        let words: Vec<String> =
            args::words(&arg).into_iter().map(|r| args::unquote(arg.get(r).unwrap_or(""))).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["compact_config"] => all.push(("compact_config".into(), String::new(), span)),
            [kind @ ("package" | "library"), name] => all.push((kind.to_string(), name.to_string(), span)),
            [name] if !matches!(*name, "package" | "library" | "") => {
                all.push(("package".into(), name.to_string(), span))
            }
            _ => {
                let d = Diagnostic::error(format!("bad requirement '{arg}'"), span)
                    .at("unknown kind of requirement");
                report.push(d.help("write 'package NAME', 'library FILE' or 'compact_config'"));
            }
        }
    }
    all
}
