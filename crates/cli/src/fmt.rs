// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet fmt`: formats the text of configurations.

pub(crate) mod diff;

use crate::args::any_text;
use crate::load::{Source, complain, show, write_bytes, write_out};
use castanet_lang::bytes::{decode, encode};
use castanet_lang::format::format;
use castanet_lang::{Sources, archive};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// The member of an archive that holds the configuration.
const CONFIG: &str = "config";

/// `castanet fmt`.
#[derive(clap::Args)]
pub struct Fmt {
    /// The files, which may be archives; `-` or no file is standard input.
    #[arg(value_name = "FILE", value_parser = any_text())]
    files: Vec<String>,
    /// Format this text.
    #[arg(short, long, value_name = "TEXT", conflicts_with_all = ["files", "write"], value_parser = any_text())]
    expression: Option<String>,
    /// Write the formatted text back to each file, instead of printing it.
    #[arg(short, long)]
    write: bool,
    /// Change nothing. Print what would change as a unified diff. The exit code is 1 if a file is not formatted.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Print diagnostics as JSON on standard error, one object a line.
    #[arg(long)]
    json: bool,
}

/// Formats each file. A file with syntax errors is reported and stays as it is; the others are still formatted.
pub fn main(args: &Fmt) -> ExitCode {
    let standard_input = ["-".to_string()];
    let files = if args.files.is_empty() { &standard_input[..] } else { &args.files };
    if args.write && files.iter().any(|f| f == "-") {
        complain("--write: name the files to write; standard input cannot be written back");
        return ExitCode::FAILURE;
    }
    let mut good = true;
    let mut done = |result: Result<bool, String>| {
        good &= result.unwrap_or_else(|e| {
            complain(&e);
            false
        });
    };
    match &args.expression {
        Some(text) => done(one(args, &Source::text("config", text, Vec::new()))),
        None => files.iter().for_each(|f| done(Source::file(f, Vec::new()).and_then(|s| one(args, &s)))),
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Formats one configuration. Returns false if `--check` finds that it is not formatted.
fn one(args: &Fmt, source: &Source) -> Result<bool, String> {
    let name = source.name.as_str();
    let input = Input::read(name, &source.bytes)?;
    let mut sources = Sources::new();
    let file = sources.add(name, input.text.as_ref());
    let formatted = format(&mut sources, file).map_err(|diagnostics| {
        show(&sources, &diagnostics, args.json);
        format!("{name}: not formatted, because of the syntax errors; it stays as it is")
    })?;
    let changed = formatted != input.text;
    if args.check {
        if changed {
            write_out(None, &diff::unified(name, &input.text, &formatted))?;
        }
        return Ok(!changed);
    }
    if !args.write {
        write_bytes(None, &input.output(name, &formatted)?)?;
    } else if changed {
        let path = Path::new(OsStr::from_bytes(&encode(name))).to_path_buf();
        write_bytes(Some(&path), &input.output(name, &formatted)?)?;
    }
    Ok(true)
}

/// A file: the text of a configuration, or an archive that has it as a member.
struct Input<'a> {
    text: Cow<'a, str>,
    /// The members of the archive; `None` if the file is no archive.
    members: Option<Vec<(String, Vec<u8>)>>,
}

impl<'a> Input<'a> {
    fn read(name: &str, bytes: &'a [u8]) -> Result<Input<'a>, String> {
        if !archive::is_archive(bytes) {
            return Ok(Input { text: decode(bytes), members: None });
        }
        let members = archive::read(bytes).map_err(|e| format!("bad archive '{name}': {e}"))?;
        let text = members.iter().find(|m| m.0 == CONFIG).map(|m| decode(&m.1).into_owned());
        let text = text.ok_or_else(|| format!("archive '{name}' has no member '{CONFIG}'"))?;
        Ok(Input { text: text.into(), members: Some(members) })
    }

    /// Returns the content of the file with the formatted text.
    fn output(self, name: &str, formatted: &str) -> Result<Vec<u8>, String> {
        let text = encode(formatted).into_owned();
        let Some(mut members) = self.members else { return Ok(text) };
        if let Some(config) = members.iter_mut().find(|m| m.0 == CONFIG) {
            config.1 = text;
        }
        archive::write(&members).map_err(|e| format!("archive '{name}': {e}"))
    }
}
