// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet net`: runs and checks networks of several routers.

mod check;
mod run;

use crate::classes::BuiltIn;
use crate::combine::Routers;
use crate::load::{Source, elaborate_in, show};
use crate::network::combined;
use castanet_classes::Registry;
use castanet_graph::network::{Component, Order, ROUTER_LINK, combine, link::is_router_name};
use castanet_graph::{Graph, unknown_classes};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_net::{NetClasses, Topology};
use clap::{Args, Subcommand};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// `castanet net`.
#[derive(Args)]
pub struct Net {
    #[command(subcommand)]
    what: What,
}

/// The subcommands for networks.
#[derive(Subcommand)]
enum What {
    /// Run a network in simulated time, with hosts at the devices that no link reaches.
    #[command(long_about = run::ABOUT, after_help = run::EXAMPLES)]
    Run(run::Run),
    /// Find forwarding loops, black holes and mismatched frames in a network, without running it.
    #[command(long_about = check::ABOUT, after_help = check::EXAMPLES)]
    Check(check::Check),
}

/// Runs a subcommand of `castanet net`.
pub fn main(args: &Net) -> ExitCode {
    let done = match &args.what {
        What::Run(a) => run::main(a),
        What::Check(a) => check::main(a),
    };
    match done {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(errors) => {
            errors.iter().for_each(|e| crate::load::complain(e));
            ExitCode::FAILURE
        }
    }
}

/// A network that was read.
struct Loaded {
    graph: Graph,
    sources: Sources,
    classes: Arc<NetClasses>,
    topology: Topology,
}

/// Reads a network: a combined configuration, or routers and the links between them. Prints its diagnostics.
///
/// # Errors
/// The errors in the links; none if all errors have been printed.
fn load(routers: &Routers) -> Result<Loaded, Vec<String>> {
    let print = |sources: &Sources, diagnostics: &[Diagnostic]| show(sources, diagnostics, routers.json);
    let available = BuiltIn::all().available(routers.clickpath.as_deref());
    let (flat, sources) = match routers.words.as_slice() {
        [file] if !file.contains('=') && routers.links.is_empty() => {
            let source = Source::file(file, Vec::new()).map_err(|e| vec![e])?;
            let (loaded, sources, _) =
                elaborate_in(&available, &source, Unknown::Opaque, Globals::Substitute);
            print(&sources, &loaded.diagnostics);
            if loaded.diagnostics.iter().any(Diagnostic::is_error) {
                return Err(Vec::new());
            }
            let mut flat = loaded.flat;
            if flat.elements.iter().all(|e| e.class != ROUTER_LINK) {
                let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
                let name = stem.filter(|s| is_router_name(s)).unwrap_or_else(|| "router".into());
                let alone = combine(vec![Component { name, flat }], &[], &Registry::new(), Order::Kept);
                flat = alone.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
            }
            (flat, sources)
        }
        _ => {
            let network = routers.read().map_err(|e| vec![e])?;
            let all = combined(network, &available, Unknown::Error, Order::Kept, print)?;
            (all.flat, all.sources)
        }
    };
    let routers = available.packages.classes(available.built_in.registry().clone()).used_by(&flat);
    let classes = Arc::new(NetClasses::new(Arc::new(routers)));
    let (graph, mut diagnostics) = Graph::new(flat, classes.as_ref());
    let links: Vec<_> =
        graph.flat.elements.iter().filter(|e| e.class == ROUTER_LINK).map(|e| e.span).collect();
    diagnostics.extend(unknown_classes(&graph, classes.as_ref()).into_iter().filter(|d| {
        let at_link = d.span.is_some_and(|s| links.contains(&s));
        !at_link || !d.message.contains(ROUTER_LINK)
    }));
    print(&sources, &diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Vec::new());
    }
    let topology = Topology::new(&graph, classes.as_ref()).map_err(|e| vec![e.to_string()])?;
    Ok(Loaded { graph, sources, classes, topology })
}
