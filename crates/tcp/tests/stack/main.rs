// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPStack and its applications in routers: with each other in simulated time, and with the kernel's TCP.
#![allow(clippy::unwrap_used)]

mod curl;
mod dumps;
mod ecn;
mod faults;
mod kernel;
mod options;
mod path_mtu;
mod simulated;
mod source_route;

use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::Running;
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_testkit::{load, real, try_router};
use std::sync::Arc;

/// Reads configurations for hot swaps.
struct Texts;

impl Loader for Texts {
    fn load(&self, _: Origin, _: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        load(text).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
}

/// Runs a router while `f` works with it. Returns its messages.
fn during(text: &str, f: impl FnOnce(&Running)) -> Vec<String> {
    let (options, log) = real(1);
    let mut r = try_router(text, options).unwrap_or_else(|e| panic!("{e}"));
    r.running().set_loader(Arc::new(Texts));
    let running = r.running().clone();
    std::thread::scope(|s| {
        let thread = s.spawn(|| r.run().unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&running)));
        running.current().unwrap().end();
        thread.join().unwrap();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
    r.ledger().check();
    log.lines()
}

fn text(r: &Running, element: &str, handler: &str) -> String {
    r.read(Some(element), handler, "").unwrap().trim().to_string()
}
fn count(r: &Running, element: &str, handler: &str) -> u64 {
    text(r, element, handler).parse().unwrap()
}
