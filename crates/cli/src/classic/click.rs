// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click`: runs a configuration with the options and the output of Click's userlevel driver.

use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::classes::{Available, BuiltIn};
use crate::load::{Source, elaborate_in, reason};
use crate::privileges::Privileges;
use crate::processor::Processors;
use crate::reread::{NOT_INITIALIZED, Reader};
use crate::times::Times;
use crate::{requests, run};
use castanet_element::Clock;
use castanet_graph::Graph;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_runtime::{Options, Router};
use castanet_spec::{ArgCx, ArgValue, Names};
use std::ffi::OsString;
use std::process::ExitCode;
use std::str::FromStr;

const ABOUT: About = About {
    name: "click",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Runs a configuration. ROUTERFILE is standard input when it is '-' or not given; NAME=VALUE defines a variable.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["threads"], "j", Value::Required("N"), "run with N threads"),
        Opt::new(
            &["affinity", "cpu"],
            "a",
            Value::Optional("N"),
            "bind the threads to processors, the first to processor N (default 0)",
        )
        .negatable(),
        Opt::new(&["port"], "p", Value::Required("PORT"), "listen for control connections on TCP port PORT"),
        Opt::new(&["unix-socket"], "u", Value::Required("FILE"), "listen for control connections at FILE"),
        Opt::new(&["socket"], "", Value::Required("FD"), "take control connections from descriptor FD"),
        Opt::new(
            &["control-token"],
            "",
            Value::Required("FILE"),
            "give TCP clients that send the token in FILE all rights",
        ),
        Opt::new(&["allow-reconfigure"], "R", Value::None, "make a writable hotconfig handler").negatable(),
        Opt::new(&["handler"], "h", Value::Required("ELEMENT.H"), "print the read handler after the run"),
        Opt::new(
            &["exit-handler"],
            "x",
            Value::Required("ELEMENT.H"),
            "take the exit status from the handler",
        ),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write the flat configuration to FILE"),
        Opt::new(&["quit"], "q", Value::None, "do not run"),
        Opt::new(&["time"], "t", Value::None, "print how long the run took"),
        Opt::new(&["warnings"], "", Value::None, "print warnings (the default)"),
        Opt::new(&["no-warnings"], "w", Value::None, "do not print warnings"),
        Opt::new(&["simtime", "simulation-time"], "", Value::Optional("SEC"), "run in simulated time"),
        Opt::new(
            &["simtick"],
            "",
            Value::Required("N"),
            "advance simulated time by N ns each time it is read (default 1)",
        )
        .own(),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(
            &["dpdk"],
            "",
            Value::None,
            "accepted with its arguments up to --; devices are opened by the kernel's drivers",
        ),
        HELP,
        VERSION,
    ],
};

/// The parsed command line.
struct Settings {
    input: Input,
    workers: usize,
    handlers: Vec<String>,
    exit: Option<String>,
    output: Option<String>,
    quit: bool,
    time: bool,
    warnings: bool,
    clock: Option<i64>,
    tick: u32,
    affinity: Option<usize>,
    sockets: crate::control::Sockets,
    swaps: bool,
}

/// The request of the command line: a run, or only a text to print.
enum Asked {
    Run(Box<Settings>),
    Print(String),
}

fn settings(words: Vec<OsString>) -> Result<Asked, Wrong> {
    let mut s = Settings {
        input: Input::default(),
        workers: 1,
        handlers: Vec::new(),
        exit: None,
        output: None,
        quit: false,
        time: false,
        warnings: true,
        clock: None,
        tick: 1,
        affinity: None,
        sockets: Default::default(),
        swaps: false,
    };
    for word in ABOUT.read(words)? {
        let (name, value) = match word {
            Word::Plain(w) => {
                s.input.word(w)?;
                continue;
            }
            Word::Option("allow-reconfigure", _, on) => {
                s.swaps = on;
                continue;
            }
            Word::Option("affinity", value, on) => {
                s.affinity = on
                    .then(|| number("affinity", "a processor's number", value.as_deref().unwrap_or("0")))
                    .transpose()?;
                continue;
            }
            Word::Option(name, value, _) => (name, value),
        };
        match name {
            "file" => s.input.file(value)?,
            "expression" => s.input.text(value)?,
            "threads" => s.workers = threads(&value.unwrap_or_default())?,
            "port" => s.sockets.ports.extend(value),
            "unix-socket" => s.sockets.unix_sockets.extend(value),
            "socket" => s.sockets.descriptors.extend(value),
            "control-token" => s.sockets.control_token = value.map(Into::into),
            "handler" => s.handlers.extend(value),
            "exit-handler" => s.exit = value,
            "output" => s.output = value,
            "quit" => s.quit = true,
            "time" => s.time = true,
            "warnings" => s.warnings = true,
            "no-warnings" => s.warnings = false,
            "simtime" => {
                let text = value.unwrap_or_else(|| "1000000000".into());
                s.clock = Some(run::simulated(&text).map_err(Wrong::Usage)?);
            }
            "simtick" => s.tick = number("simtick", "nanoseconds", &value.unwrap_or_default())?,
            "clickpath" => s.input.clickpath = value,
            "version" => return Ok(Asked::Print(ABOUT.version())),
            _ => return Ok(Asked::Print(ABOUT.help())),
        }
    }
    s.sockets.places().map_err(Wrong::Usage)?;
    if let Some(first) = s.affinity {
        Processors::from(first, s.workers).check(s.workers).map_err(Wrong::Usage)?;
    }
    Ok(Asked::Run(Box::new(s)))
}

/// Largest number of workers.
const MOST: i64 = 256;

fn threads(text: &str) -> Result<usize, Wrong> {
    match number::<i64>("threads", "an integer", text)? {
        n if n > MOST => Err(Wrong::Usage(format!("option '--threads': at most {MOST}, not {text}"))),
        n => Ok(usize::try_from(n).unwrap_or(1).max(1)),
    }
}

/// Reads the number that an option expects.
fn number<N: FromStr>(option: &str, what: &str, text: &str) -> Result<N, Wrong> {
    let wrong = |_| Wrong::Usage(format!("option '--{option}' expects {what}, not '{text}'"));
    text.trim().parse().map_err(wrong)
}

/// Runs as `click`, with the classes in this program.
pub fn main(words: Vec<OsString>, built_in: BuiltIn) -> ExitCode {
    match settings(without_dpdk(words)) {
        Ok(Asked::Print(text)) => ExitCode::from(u8::from(!print(ABOUT.name, &text))),
        Ok(Asked::Run(s)) => ExitCode::from(run(*s, built_in)),
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

/// Removes `--dpdk` and the words that follow it, up to `--`. FastClick passes them to DPDK, which is not used here.
fn without_dpdk(mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(first) = words.iter().position(|w| w == "--dpdk") {
        say("warning: --dpdk: devices are opened by the kernel's drivers");
        let end = words.iter().skip(first).position(|w| w == "--").map_or(words.len(), |n| first + n + 1);
        words.drain(first..end);
    }
    words
}

/// Builds the router; the error is the exit code.
fn build(s: &Settings, available: &Available, source: &Source) -> Result<Router, u8> {
    let (loaded, sources, classes) = elaborate_in(available, source, Unknown::Error, Globals::Substitute);
    let (flat, mut diagnostics) = (loaded.flat, loaded.diagnostics);
    let report = |sources: &Sources, mut diagnostics: Vec<Diagnostic>| {
        diagnostics.retain(|d| s.warnings || d.is_error());
        show(sources, &diagnostics);
    };
    if diagnostics.iter().any(Diagnostic::is_error) {
        report(&sources, diagnostics);
        return Err(1);
    }
    if flat.elements.is_empty() {
        report(&sources, diagnostics);
        if s.warnings {
            say(&format!("warning: {}: configuration has no elements, exiting", source.name));
        }
        return Err(0);
    }
    let config = sources.text(flat.file).to_string();
    let (graph, errors) = Graph::new(flat, classes.as_ref());
    diagnostics.extend(errors);
    let options = Options {
        workers: s.workers,
        clock: s.clock.map_or_else(Clock::real, |start| Clock::ticking(start, s.tick)),
        printer: Box::new(say),
        on_start: s.affinity.map(|first| Processors::from(first, s.workers).binding()),
        config: config.into(),
        ..Options::default()
    };
    let built = run::build(graph, classes, &sources, options, &mut diagnostics);
    report(&sources, diagnostics);
    built.ok_or_else(|| {
        say(NOT_INITIALIZED);
        1
    })
}

fn run(mut s: Settings, built_in: BuiltIn) -> u8 {
    if let Err(e) = crate::signals::end_at_once() {
        say(&format!("{}: {e}", ABOUT.name));
        return 1;
    }
    let source = match s.input.read() {
        Ok(s) => s,
        Err(e) => {
            say(&e);
            return 1;
        }
    };
    let available = built_in.available(s.input.clickpath.as_deref());
    let held = match Privileges::default().start(None) {
        Ok(held) => held,
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            return 1;
        }
    };
    let mut router = match build(&s, &available, &source) {
        Ok(router) => router,
        Err(code) => return code,
    };
    let servers = match s.sockets.open(router.running()) {
        Ok(servers) => servers,
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            return 1;
        }
    };
    let mut code = 0;
    if let Some(file) = &s.output {
        let text = router.shared().global("flatconfig").unwrap_or_default();
        if !write(ABOUT.name, Some(file), &castanet_lang::bytes::encode(&text)) {
            code = 1;
        }
    }
    if let Err(e) = held.give_up() {
        say(&format!("{}: {e}", ABOUT.name));
        return 1;
    }
    let start = Times::now();
    if !s.quit {
        let running = router.running().clone();
        let attended = Reader::classic(available, &source.defines).attend(&running, s.swaps, None);
        let ran = attended.and_then(|()| router.run());
        if let Err(e) = ran {
            say(&format!("{}: {}", ABOUT.name, reason(&e)));
            code = 1;
        }
    }
    // The message of each panic has been printed.
    if router.running().panics() > 0 {
        code = 1;
    }
    let took = start.until(&Times::now());
    drop(servers);
    let answers = requests::answer(&mut router, &s.handlers);
    for e in &answers.errors {
        say(e);
        code = 1;
    }
    if !answers.text.is_empty() && !print(ABOUT.name, &answers.text) {
        code = 1;
    }
    if let Some(handler) = s.exit.take() {
        code = exit(&mut router, handler);
    }
    for (who, what) in router.cleanup() {
        say(&format!("{who}: {what}"));
        if code == 0 {
            code = 1;
        }
    }
    if s.time {
        say(&took.text());
    }
    code
}

/// Returns the exit status for the value of a handler: an integer is used as it is, true becomes 0, and false
/// becomes 1. If the handler fails or has any other value, the status is 255.
fn exit(router: &mut Router, handler: String) -> u8 {
    let answer = requests::answer(router, &[handler]);
    if let Some(e) = answer.errors.first() {
        say(e);
        return u8::MAX;
    }
    let names = Names::new();
    let cx = ArgCx { scope: "", names: &names, origin: castanet_spec::Origin::Operator };
    let text = answer.text.trim();
    match (i32::parse(text, &cx), bool::parse(text, &cx)) {
        // An exit status has 8 bits: -1 becomes 255.
        (Ok(n), _) => n.to_le_bytes().first().copied().unwrap_or(0),
        (_, Ok(b)) => u8::from(!b),
        _ => {
            say("exit handler value should be integer");
            u8::MAX
        }
    }
}
