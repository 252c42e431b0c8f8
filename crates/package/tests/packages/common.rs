// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages that are built once for all tests, and routers that use them.

use castanet_classes::Registry;
use castanet_element::{Classes, Clock};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown, load_bytes, render};
use castanet_package::build::{Options as Build, build};
use castanet_package::{Packages, WithPackages};
use castanet_runtime::{Options, Router};
use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A temporary directory for built files, removed when the tests end.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

/// Locks out other tests. Mappings belong to the process, so only one test at a time may load packages and count
/// mappings.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock()
}

/// Builds the crate in `folder` as `to`.
pub fn package(crate_folder: &Path, to: &str) -> PathBuf {
    let output = folder().join(to);
    let options =
        Build { folder: crate_folder.into(), output: Some(output.clone()), release: false, sdk: None };
    build(&options).unwrap_or_else(|e| panic!("{e}"));
    output
}

/// The file of the example package.
pub fn tally() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    FILE.get_or_init(|| package(&here.join("../../examples/tally"), "tally.castanet"))
}

/// The file of the probe package, whose classes provoke failures.
pub fn probe() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    FILE.get_or_init(|| package(&here.join("tests/packages/probe"), "probe.castanet"))
}

/// A router of a configuration, with all loaded packages.
pub fn router(packages: &Packages, text: &str, workers: usize) -> Result<Router, String> {
    router_that_says(packages, text, workers, Options::default().printer)
}

/// Like [`router`], with messages going to `printer`.
pub fn router_that_says(
    packages: &Packages,
    text: &str,
    workers: usize,
    printer: Box<dyn Fn(&str) + Send + Sync>,
) -> Result<Router, String> {
    let read = |classes: &WithPackages| {
        let mut sources = Sources::new();
        let options =
            castanet_lang::Options { classes, defines: &[], library: &NoLibrary, unknown: Unknown::Error };
        let (flat, wrong) = load_bytes(&mut sources, "test", text.as_bytes(), &options);
        (flat, wrong, sources)
    };
    let mut classes = packages.classes(Arc::new(Registry::new()));
    let (flat, ..) = read(&classes);
    let missing = packages.require(&flat, "test", &|name| Registry::new().get(name).is_some(), &mut classes);
    let (flat, mut wrong, sources) = read(&classes);
    wrong.extend(missing);
    let classes = Arc::new(classes.used_by(&flat));
    let (graph, more) = Graph::new(flat, classes.as_ref());
    wrong.extend(more);
    if !wrong.iter().any(Diagnostic::is_error) {
        let clock = if workers == 1 { Clock::simulated(0) } else { Clock::real() };
        let options = Options { workers, clock, printer, ..Options::default() };
        match castanet_runtime::build(graph, classes, &sources, options) {
            Ok((router, _)) => return Ok(router),
            Err(more) => wrong.extend(more),
        }
    }
    Err(render::render_classic(&sources, &wrong))
}

/// The number of executable mappings of packages with this name. (Backtraces read the file and keep it mapped
/// as data.)
pub fn mapped(name: &str) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|l| l.contains(" r-xp ") && l.contains(&format!("castanet-package-{name}"))).count()
}
