// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet run`: runs a configuration until it stops or is stopped.

use crate::api::{Context, Near};
use crate::args::Run;
use crate::classes::BuiltIn;
use crate::devirtualize::Loader;
use crate::kernel::{Driver, Kernel};
use crate::load::{Loaded, Source, complain, load_in, show};
use crate::processor::Processors;
use crate::profile::Profile;
use crate::reread::{Reader, reread};
use crate::signals::{self, Hangup};
use crate::{live, requests, summary};
use castanet_element::build::of_router;
use castanet_element::{Classes, Clock};
use castanet_graph::Graph;
use castanet_io::device::xdp::end_pins;
use castanet_jit::When;
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_runtime::compiled::LoadCode;
use castanet_runtime::{Given, Options, Router, Running};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Parses the value of `--simtime`, in seconds since 1970. Returns nanoseconds.
pub fn simulated(text: &str) -> Result<i64, String> {
    use castanet_spec::value::{ArgValue, Nanos};
    let names = castanet_spec::Names::new();
    let t = Nanos::parse(
        text,
        &castanet_spec::ArgCx { scope: "", names: &names, origin: castanet_spec::Origin::Operator },
    );
    t.map(|n| n.0).map_err(|e| format!("--simtime: {e}"))
}

/// Builds the router of a graph, unless `diagnostics` has errors. Adds the errors and warnings of building to
/// `diagnostics`.
pub fn build(
    graph: Graph,
    classes: Arc<dyn Classes>,
    sources: &Sources,
    options: Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Router> {
    if diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    let (router, more) = match castanet_runtime::build(graph, classes, sources, options) {
        Ok((router, warnings)) => (Some(router), warnings),
        Err(errors) => (None, errors),
    };
    diagnostics.extend(more);
    router
}

/// The state for the elements of every router: the compilers of classifiers and of paths.
fn given(args: &Run) -> Given {
    match (args.no_optimize || args.no_jit, args.jit_first) {
        (true, _) => Given::default(),
        (false, false) => compilers(When::Wanted),
        (false, true) => compilers(When::AtOnce),
    }
}

/// Compilers of classifiers and of paths.
fn compilers(when: When) -> Given {
    let mut given = of_router(castanet_jit::compiler(when));
    given.extend(of_router(castanet_jit::path_compiler(when)));
    given
}

fn options(args: &Run, name: &str, text: Arc<str>) -> Result<Options, String> {
    let clock = match &args.simtime {
        Some(t) => Clock::simulated(simulated(t)?),
        None => Clock::real(),
    };
    let named = args.cpus.as_deref().map(Processors::parse).transpose()?;
    let workers = args.workers.unwrap_or_else(|| named.as_ref().map_or(1, Processors::len));
    if workers == 0 || workers > 256 {
        return Err(format!("-j {workers}: the number of workers is 1 to 256"));
    }
    let processors = named.or_else(|| args.affinity.map(|first| Processors::from(first, workers)));
    if args.batch == 0 || args.batch > 256 {
        return Err(format!("--batch {}: the size of batches is 1 to 256", args.batch));
    }
    if let Some(processors) = &processors {
        processors.check(workers)?;
    }
    Ok(Options {
        workers,
        on_start: processors.map(Processors::binding),
        batch: args.batch,
        seed: args.seed,
        clock,
        config: text,
        client_files: args.from_clients.library_path.clone(),
        report_undefined: true,
        on_panic: args.on_panic.into(),
        optimize: !args.no_optimize,
        given: given(args),
        code: args.allow_code.then(|| -> Arc<dyn LoadCode> { Arc::new(Loader { name: name.to_string() }) }),
        printer: Box::new(|text| {
            let _ = std::io::stderr().lock().write_all(&castanet_lang::bytes::line(text));
        }),
    })
}

/// Runs a configuration with the classes in this program, then prints handlers and a summary.
pub fn main(args: &Run, built_in: BuiltIn) -> ExitCode {
    let ran = run(args, built_in);
    end_pins();
    match ran {
        Ok(code) => code,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

fn uncaught(e: std::io::Error) -> String {
    format!("signals cannot be caught: {}", crate::load::reason(&e))
}

/// Returns the action for SIGHUP: reread the configuration. `None` if the configuration did not come from a
/// file.
fn hangup(args: &Run, running: &Arc<Running>) -> Option<Hangup> {
    let (again, running) = (args.configuration.clone(), running.clone());
    again.is_file().then(|| -> Hangup { Box::new(move || reread(&running, || Source::read(&again))) })
}

fn run(args: &Run, built_in: BuiltIn) -> Result<ExitCode, String> {
    signals::end_at_once().map_err(uncaught)?;
    let mut source = Source::read(&args.configuration)?;
    // Later configurations can use the packages that this one loads.
    let available = built_in.available(args.configuration.clickpath.as_deref());
    let mut loaded = load_in(&available, &source, Unknown::Error);
    // From here on, `loaded` has the text.
    source.bytes = Vec::new();
    if loaded.graph.is_empty() && !loaded.failed() {
        show(&loaded.sources, &loaded.diagnostics, args.configuration.json);
        complain(&format!("{}: the configuration has no elements, there is nothing to run", source.name));
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(args, &source.name, std::mem::take(&mut loaded.text))?;
    let workers = options.workers;
    let pin = args.pin.start(args.driver)?;
    let held = args.privileges.start(pin)?;
    let Loaded { sources, graph, mut diagnostics, classes, .. } = loaded;
    let graph = args.driver.apply(graph, classes.as_ref());
    // Click runs configurations with wrong packet types, and its users' configurations have to run here.
    let packet_types = castanet_graph::packets::check(&graph).into_iter().map(Diagnostic::into_warning);
    let built = build(graph, classes, &sources, options, &mut diagnostics);
    if built.is_some() {
        diagnostics.extend(packet_types);
    }
    show(&sources, &diagnostics, args.configuration.json);
    let Some(mut router) = built else { return Ok(ExitCode::FAILURE) };
    if args.driver == Driver::Xdp {
        let kernel = Arc::new(Kernel::new());
        router.start_in_kernel(kernel.clone()).map_err(|e| format!("--driver xdp: {e}"))?;
        if let Some(why) = kernel.uncounted() {
            complain(&format!("--driver xdp: frames that a device does not send count as sent: {why}"));
        }
        if let Some(dropped) = kernel.take_over() {
            complain(&format!(
                "--pin: took over from a router that has died; its programs have dropped {dropped} packets that needed it"
            ));
        }
    }
    let running = router.running().clone();
    let context = Context {
        available: available.clone(),
        defines: source.defines.clone(),
        allowed: args.from_clients.clone(),
        workers,
    };
    Reader::new(available, &source.defines, &args.from_clients, args.driver)
        .attend(&running, args.allow_reconfigure, hangup(args, &running))
        .map_err(uncaught)?;
    let mount = args.mount.as_deref().map(|folder| crate::mount::over(folder, &router)).transpose()?;
    let servers = args.sockets.open(router.running())?;
    let http = args.http.open(Arc::new(Near(running.clone())), context)?;
    if mount.is_none() && servers.is_empty() && http.is_none() {
        running.stop_when_idle();
    }
    held.give_up()?;
    let live = (!args.quiet && std::io::stderr().is_terminal())
        .then(|| live::Line::start("running", ", Ctrl-C stops"));
    if args.profile {
        running.begin_profile();
    }
    let start = Instant::now();
    let ran = router.run();
    let elapsed = start.elapsed();
    drop(live);
    drop(http);
    drop(servers);
    drop(mount);
    ran.map_err(|e| format!("a worker could not be started: {}", crate::load::reason(&e)))?;
    let answers = requests::answer(&mut router, &args.handlers);
    let profile =
        args.profile.then(|| router.read(None, "profile", "")).transpose().map_err(|e| e.to_string())?;
    let profile = profile.map(|text| Profile::parse(&text));
    let summary = (!args.quiet).then(|| summary::Summary::of(&mut router, elapsed));
    // The messages of panics and failed calls have been printed.
    let mut failed = running.panics() > 0 || running.failed_calls() > 0;
    for (who, what) in router.cleanup() {
        complain(&format!("{who}: {what}"));
        failed = true;
    }
    crate::load::write_out(None, &answers.text)?;
    for e in &answers.errors {
        complain(e);
        failed = true;
    }
    if let Some(s) = summary {
        let text = if args.configuration.json { s.json() } else { s.text() };
        // With -h, standard output has the values only, so that scripts can parse it.
        if args.handlers.is_empty() {
            crate::load::write_out(None, &text)?;
        } else {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        }
    }
    if let Some(profile) = profile {
        show_profile(args, &profile)?;
    }
    // The elements are freed one by one, because they may hold resources outside the program. All else is memory, which the
    // system frees faster.
    std::mem::forget(router.shared().clone());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints a profile, and draws it. Standard output has only one document in JSON, and with -h it has only values.
fn show_profile(args: &Run, profile: &Profile) -> Result<(), String> {
    if args.configuration.json {
        let _ = writeln!(std::io::stderr().lock(), "{}", profile.json());
    } else if args.handlers.is_empty() {
        crate::load::write_out(None, &profile.text())?;
    } else {
        let _ = std::io::stderr().lock().write_all(profile.text().as_bytes());
    }
    args.flame.as_ref().map_or(Ok(()), |file| crate::load::write_out(Some(file), &profile.flame()))
}
