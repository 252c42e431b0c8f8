// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet graph`: draws a configuration, with the rates of a running router if that is asked for.

mod live;

use crate::args::Graph;
use crate::ctl::{Connection, Failure};
use crate::load::{Source, load, show, write_out};
use castanet_control::Client;
use castanet_graph::{Drawing, Fold};
use castanet_lang::Unknown;
use std::process::ExitCode;
use std::time::Duration;

/// How long a router may take to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to the router whose rates are shown, if there is one.
fn router(args: &Graph) -> Result<Option<Client>, Failure> {
    let Some(address) = &args.live else { return Ok(None) };
    let connection = Connection { address: address.clone(), token: None, timeout: TIMEOUT };
    connection.open().map(Some)
}

/// Reads the configuration: from the command line, or from the router.
fn source(args: &Graph, router: Option<&mut Client>) -> Result<Source, Failure> {
    match router {
        Some(router)
            if args.configuration.words.is_empty()
                && args.configuration.expression.is_none()
                && args.configuration.file.is_none() =>
        {
            let text = router.read_text("config", "")?;
            Ok(Source {
                packages: args.configuration.packages.clone(),
                ..Source::text("router", &text, Vec::new())
            })
        }
        _ => Source::read(&args.configuration).map_err(Into::into),
    }
}

/// Draws the configuration. A configuration with errors is drawn as far as possible, and the errors are printed.
pub fn main(args: &Graph) -> ExitCode {
    let drawn = draw(args);
    match drawn {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => crate::ctl::exit(Err(failure)),
    }
}

/// Draws the configuration. Returns whether it has no errors.
fn draw(args: &Graph) -> Result<bool, Failure> {
    let mut router = router(args)?;
    let source = source(args, router.as_mut())?;
    let loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics, args.configuration.json);
    let fold = match (args.fold_all, args.depth, args.fold.as_slice()) {
        (true, ..) => Fold::All,
        (_, Some(depth), _) => Fold::Depth(depth),
        (.., []) => Fold::None,
        (.., names) => Fold::Named(names.to_vec()),
    };
    let mut drawing = Drawing::new(&loaded.graph, &fold).map_err(|e| e.to_string())?;
    if let Some(router) = &mut router {
        drawing = drawing.with_rates(live::rates(&loaded.graph, &live::rows(router, args.interval)?));
    }
    let text = match (args.dot, args.gml, args.graphml) {
        (true, ..) => drawing.dot(),
        (_, true, _) => drawing.gml(),
        (.., true) => drawing.graphml(),
        _ => drawing.svg(),
    };
    write_out(args.output.as_deref(), &text)?;
    Ok(!loaded.failed())
}
