// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet prolac`: compiles, checks, formats and explains programs of the protocol language.

use crate::args::any_text;
use crate::fmt::diff;
use crate::load::{complain, exit, show, write_out};
use castanet_lang::bytes::encode;
use castanet_lang::{Diagnostic, Sources};
use castanet_prolac::load::{Extensions, Folder, MAX_LENGTH, plain};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::Program;
use castanet_prolac::{counted, format, graph, outline, rust, stats};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// `castanet prolac`.
#[derive(clap::Args)]
pub struct Prolac {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compile a program to Rust.
    #[command(after_help = "Examples:\n  castanet prolac compile tcp.pc -o tcp.rs\n  \
        castanet prolac compile tcp.pc -x Delay-Ack,Slow-Start -o tcp.rs")]
    Compile(Compile),
    /// Report all errors of programs.
    Check(Check),
    /// Format the text of programs: blanks and indentation.
    #[command(after_help = "Line breaks and comments stay as they are, but each declaration starts a line.")]
    Fmt(Fmt),
    /// Print how many calls dispatch dynamically before and after the analyses, and which calls are inlined.
    Stats(Stats),
    /// Draw the modules of a program and how they extend each other, as SVG.
    Graph(Graph),
    /// Print the modules of a program with their fields, exceptions and methods.
    Outline(Outline),
}

/// A program.
#[derive(clap::Args)]
struct Input {
    /// The main file of the program; `-` is standard input.
    #[arg(value_name = "FILE", value_parser = any_text())]
    file: String,
    #[command(flatten)]
    extensions: Chosen,
}

/// The extensions that are switched on.
#[derive(clap::Args)]
struct Chosen {
    /// Switch on these extensions of the program; `all` stands for all of them.
    #[arg(short = 'x', long = "extensions", value_name = "NAMES", value_delimiter = ',')]
    extensions: Vec<String>,
}

#[derive(clap::Args)]
struct Switches {
    /// Dispatch each call by the module of the object, even if only one definition is possible.
    #[arg(long)]
    no_hierarchy: bool,
    /// Keep all calls, and let the compiler of Rust inline none.
    #[arg(long)]
    no_inline: bool,
    /// Inline only what is called directly where `pathinline` stands.
    #[arg(long)]
    no_path_inline: bool,
    /// Keep what `outline` marks in its place.
    #[arg(long)]
    no_outline: bool,
}

impl Switches {
    fn optimisations(&self) -> Optimisations {
        Optimisations {
            hierarchy: !self.no_hierarchy,
            inline: !self.no_inline,
            path_inline: !self.no_path_inline,
            outline: !self.no_outline,
        }
    }
}

#[derive(clap::Args)]
struct Compile {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    switches: Switches,
    /// Write the Rust source to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Check {
    /// The main files of the programs; `-` is standard input.
    #[arg(value_name = "FILE", required = true, value_parser = any_text())]
    files: Vec<String>,
    #[command(flatten)]
    extensions: Chosen,
    /// Print diagnostics as JSON on standard error, one object a line.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Fmt {
    /// The files; `-` or no file is standard input.
    #[arg(value_name = "FILE", value_parser = any_text())]
    files: Vec<String>,
    /// Write the formatted text back to each file, instead of printing it.
    #[arg(short, long)]
    write: bool,
    /// Change nothing. Print what would change as a unified diff. The exit code is 1 if a file is not formatted.
    #[arg(long, conflicts_with = "write")]
    check: bool,
}

#[derive(clap::Args)]
struct Stats {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    switches: Switches,
}

#[derive(clap::Args)]
struct Graph {
    #[command(flatten)]
    input: Input,
    /// Write the drawing to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Outline {
    #[command(flatten)]
    input: Input,
}

/// Runs a subcommand.
pub fn main(args: &Prolac) -> ExitCode {
    let done = match &args.command {
        Command::Compile(a) => compile(a),
        Command::Check(a) => Ok(a.files.iter().filter(|file| !check(a, file)).count() == 0),
        Command::Fmt(a) => fmt(a),
        Command::Stats(a) => stats(a),
        Command::Graph(a) => {
            program(&a.input).map_or(Ok(false), |p| print(a.output.as_deref(), &graph::svg(&p)))
        }
        Command::Outline(a) => program(&a.input).map_or(Ok(false), |p| print(None, &outline::outline(&p))),
    };
    exit(done)
}

fn print(output: Option<&Path>, text: &str) -> Result<bool, String> {
    write_out(output, text).map(|()| true)
}

/// Reads a file, or standard input for `-`. A text that is not UTF-8 is refused, because `fmt` would not write it back as it was.
fn read(file: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let done = match file {
        "-" => std::io::stdin().lock().take(MAX_LENGTH + 1).read_to_end(&mut bytes),
        _ => {
            let path = Path::new(OsStr::from_bytes(&encode(file))).to_path_buf();
            std::fs::File::open(path).and_then(|f| f.take(MAX_LENGTH + 1).read_to_end(&mut bytes))
        }
    };
    let read = done.map_err(|e| format!("{file}: {}", crate::load::reason(&e)))?;
    if read as u64 > MAX_LENGTH {
        return Err(format!("{file}: the file is larger than {} MiB", MAX_LENGTH >> 20));
    }
    String::from_utf8(bytes).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        format!("{file}:{line}: the text is not UTF-8")
    })
}

/// Reads and types a program.
fn analyse(file: &str, extensions: &Chosen) -> Result<(Program, Sources, Vec<Diagnostic>), String> {
    let text = read(file)?;
    let mut sources = Sources::new();
    let name = if file == "-" { "<stdin>".into() } else { plain(file.into()).to_string_lossy().into_owned() };
    let main = sources.add(name, text);
    let extensions = Extensions::Named(extensions.extensions.clone());
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, main, &Folder, &extensions);
    Ok((program, sources, diagnostics))
}

/// The program of a command line, after its diagnostics have been shown. `None` if it has errors.
fn program(input: &Input) -> Option<Program> {
    match analyse(&input.file, &input.extensions) {
        Ok((program, sources, diagnostics)) => {
            show(&sources, &diagnostics, false);
            (!diagnostics.iter().any(Diagnostic::is_error)).then_some(program)
        }
        Err(e) => {
            complain(&e);
            None
        }
    }
}

fn stats(args: &Stats) -> Result<bool, String> {
    let start = Instant::now();
    let Some(program) = program(&args.input) else { return Ok(false) };
    let compiled = rust::compile(&program, args.switches.optimisations());
    let time = start.elapsed().as_secs_f64() * 1_000.0;
    let figures = stats::stats(&program, args.switches.optimisations());
    let lines = counted(compiled.text.lines().count(), "line");
    print(None, &format!("{figures}\ncompiled to {lines} of Rust in {time:.1} ms\n"))
}

fn compile(args: &Compile) -> Result<bool, String> {
    let Some(program) = program(&args.input) else { return Ok(false) };
    let compiled = rust::compile(&program, args.switches.optimisations());
    print(args.output.as_deref(), &compiled.text)
}

/// Checks one program and shows its diagnostics. Returns whether it has no errors.
fn check(args: &Check, file: &str) -> bool {
    match analyse(file, &args.extensions) {
        Ok((program, sources, diagnostics)) => {
            show(&sources, &diagnostics, args.json);
            let good = !diagnostics.iter().any(Diagnostic::is_error);
            if good && !args.json {
                let modules = counted(program.modules.len(), "module");
                let methods = counted(program.methods.len(), "method");
                // A failed write is ignored: the exit code still gives the result.
                let _ = write_out(None, &format!("{file}: {modules}, {methods}, program OK\n"));
            }
            good
        }
        Err(e) => {
            match args.json {
                true => show(&Sources::new(), &[Diagnostic::error(e, None)], true),
                false => complain(&e),
            }
            false
        }
    }
}

fn fmt(args: &Fmt) -> Result<bool, String> {
    let standard_input = ["-".to_string()];
    let files = if args.files.is_empty() { &standard_input[..] } else { &args.files };
    if args.write && files.iter().any(|f| f == "-") {
        return Err("--write: name the files to write; standard input cannot be written back".into());
    }
    let mut good = true;
    for file in files {
        match fmt_one(args, file) {
            Ok(formatted) => good &= formatted,
            Err(e) => {
                complain(&e);
                good = false;
            }
        }
    }
    Ok(good)
}

/// Formats one file. Returns false if `--check` finds that it is not formatted.
fn fmt_one(args: &Fmt, file: &str) -> Result<bool, String> {
    let text = read(file)?;
    let mut sources = Sources::new();
    let id = sources.add(file, text.as_str());
    let formatted = format::format(&sources, id).map_err(|diagnostics| {
        show(&sources, &diagnostics, false);
        format!("{file}: not formatted, because of the syntax errors; it stays as it is")
    })?;
    if args.check {
        if formatted != text {
            write_out(None, &diff::unified(file, &text, &formatted))?;
        }
        return Ok(formatted == text);
    }
    if !args.write {
        write_out(None, &formatted)?;
    } else if formatted != text {
        let path = Path::new(OsStr::from_bytes(&encode(file))).to_path_buf();
        write_out(Some(&path), &formatted)?;
    }
    Ok(true)
}
