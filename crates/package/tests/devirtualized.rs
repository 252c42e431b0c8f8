// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles code for configurations, and compares routers that run it with routers that do not.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::prelude::*;
use castanet_element::{action, element};
use castanet_graph::Graph;
use castanet_graph::devirtualize::source;
use castanet_package::code;
use castanet_runtime::OnPanic;
use castanet_runtime::compiled::{Code, Entry, LoadCode};
use castanet_runtime::swap::Loaded;
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::seen::Seen;
use castanet_testkit::{load, load_with, simulated, try_router, try_router_with};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The code of several configurations, in one library.
struct Many {
    code: Arc<dyn Code>,
    /// The sites of each configuration.
    sites: Vec<std::ops::Range<usize>>,
}

/// The code of one configuration of a library.
struct One {
    sites: Vec<u32>,
    entries: Vec<(u32, u32, Entry)>,
}

impl Code for One {
    fn sites(&self) -> &[u32] {
        &self.sites
    }
    fn entries(&self) -> &[(u32, u32, Entry)] {
        &self.entries
    }
}

/// Gives the same code to every router, and counts the routers.
struct Give(Arc<dyn Code>, AtomicUsize);

impl LoadCode for Give {
    fn load(&self, _: &Graph) -> Result<Option<Arc<dyn Code>>, String> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(Some(self.0.clone()))
    }
}

/// Panics on every third packet.
#[derive(Class)]
#[class(name = "FaultyAction", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
struct FaultyAction {
    seen: u32,
}

impl Action for FaultyAction {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.seen += 1;
        assert!(!self.seen.is_multiple_of(3), "an action");
        Verdict::Next
    }
}

/// Panics on every third packet.
#[derive(Class)]
#[class(name = "FaultyElement", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
struct FaultyElement {
    seen: u32,
}

impl Element for FaultyElement {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.seen += 1;
        assert!(!self.seen.is_multiple_of(3), "an element");
        cx.forward(0, batch);
    }
}

fn faulty(registry: &mut castanet_classes::Registry) {
    registry.add(action::<FaultyAction>());
    registry.add(element::<FaultyElement>());
}

impl Many {
    /// Compiles the code of configurations.
    fn compile(texts: &[String]) -> Many {
        Many::changed(texts, |source| source)
    }
    /// Like [`Many::compile`], with a change of the source.
    fn changed(texts: &[String], change: impl Fn(String) -> String) -> Many {
        let (mut all, mut sites, mut first) = (String::new(), Vec::new(), 0);
        let (mut lists, mut entries) = (String::new(), String::new());
        for (i, text) in texts.iter().enumerate() {
            let Loaded { graph, classes, .. } =
                load_with(text, faulty).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let (graph, units) = castanet_runtime::units(graph, classes.as_ref()).unwrap();
            let made = source(&graph, &units, &|_| true, first);
            let _ = write!(
                all,
                "mod c{i} {{ use super::{{castanet_element, castanet_elements, castanet_packet, castanet_runtime}};\n{}\n}}\n",
                change(made.text)
            );
            sites.push(first..first + made.sites);
            first += made.sites;
            let _ = write!(lists, "c{i}::SITES, ");
            let _ = write!(entries, "c{i}::ENTRIES, ");
        }
        let _ = write!(
            all,
            "const fn total<T>(lists: &[&[T]]) -> usize {{ let (mut n, mut i) = (0, 0); while i < lists.len() {{ n += lists[i].len(); i += 1; }} n }}
             const fn joined<T: Copy, const N: usize>(lists: &[&[T]], first: T) -> [T; N] {{
                 let (mut all, mut n, mut i) = ([first; N], 0, 0);
                 while i < lists.len() {{ let mut k = 0; while k < lists[i].len() {{ all[n] = lists[i][k]; n += 1; k += 1; }} i += 1; }}
                 all
             }}
             use castanet_runtime::compiled::Entry;
             const A: &[&[u32]] = &[{lists}];
             const B: &[&[(u32, u32, Entry)]] = &[{entries}];
             pub const SITES: &[u32] = &joined::<_, {{ total(A) }}>(A, 0);
             pub const ENTRIES: &[(u32, u32, Entry)] = &joined::<_, {{ total(B) }}>(B, (0, 0, |_, _| true));\n"
        );
        let library = code::build(&all, 0, None).unwrap_or_else(|e| panic!("{e}"));
        Many { code: code::load("test", &library, Some(0)).unwrap_or_else(|e| panic!("{e}")), sites }
    }
    /// The code of a configuration.
    fn one(&self, i: usize) -> Arc<Give> {
        let range = self.sites[i].clone();
        let here = |e: &&(u32, u32, Entry)| range.contains(&(e.0 as usize));
        let entries = self.code.entries().iter().filter(here).copied().collect();
        // The sites of the other configurations are no elements of this one.
        let of = |(site, element): (usize, &u32)| if range.contains(&site) { *element } else { u32::MAX };
        let sites = self.code.sites().iter().enumerate().map(of).collect();
        Arc::new(Give(Arc::new(One { sites, entries }), AtomicUsize::new(0)))
    }
}

/// Runs configurations with and without code, at batch sizes 1 and 32. Returns how many have code.
fn compare(texts: &[String], many: &Many) -> usize {
    let mut with_code = 0;
    for (i, text) in texts.iter().enumerate() {
        let give = many.one(i);
        with_code += usize::from(!give.0.entries().is_empty());
        for batch in [1, 32] {
            let plain = Seen::with(text, batch, |_| {});
            let coded = Seen::with(text, batch, |options| options.code = Some(give.clone()));
            assert_eq!(plain, coded, "configuration {i}, batch {batch}\n{text}");
        }
        assert_eq!(give.1.load(Ordering::Relaxed), 2);
    }
    with_code
}

#[test]
fn routers_with_code_do_the_same() {
    let wish = Wish { marks: true, cycles: true, exact: true, overflow: true, time: true, ..Wish::default() };
    let random = (0..60).map(|seed| Configuration::random(seed, wish).text());
    let conf = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let mut files: Vec<_> = std::fs::read_dir(conf).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "click"));
    files.sort();
    let project = files.iter().map(|f| std::fs::read_to_string(f).unwrap());
    let mut texts: Vec<String> = random.chain(project).collect();
    // Configurations that name files with relative paths, or that need variables, are left out.
    texts.retain(|text| {
        load(text).is_ok_and(|Loaded { graph, classes, .. }| {
            castanet_runtime::units(graph, classes.as_ref()).is_ok()
        })
    });
    assert!(texts.len() > 80, "{}", texts.len());
    let many = Many::compile(&texts);
    let random = compare(&texts[..60], &many);
    assert!(random > 50, "{random} random configurations have code");
    // Of the project's configurations, those that stop by themselves and need no device are run.
    let mut run = 0;
    for (i, text) in texts.iter().enumerate().skip(60) {
        if try_router(text, simulated(1).0).is_ok() && text.contains("STOP true") {
            compare_one(text, &many.one(i));
            run += 1;
        }
    }
    assert!(run > 5, "{run} configurations of the project were run");
}

/// Compares runs of a configuration by its messages, counts and drops.
fn compare_one(text: &str, give: &Arc<Give>) {
    let run = |code: Option<Arc<dyn LoadCode>>| {
        let (mut options, log) = simulated(1);
        options.code = code;
        let mut r = try_router(text, options).unwrap();
        r.run().unwrap();
        r.ledger().check();
        let names: Vec<String> = r.shared().graph.flat.elements.iter().map(|e| e.name.clone()).collect();
        let mut count = |name: &String| {
            let e = r.find(name);
            r.read(e, "count", "").ok()
        };
        let counts: Vec<_> = names.iter().map(&mut count).collect();
        let mut drops: Vec<_> = r.drops().into_iter().map(|((e, reason), n)| (e, reason.name(), n)).collect();
        drops.sort();
        (log.lines(), counts, drops)
    };
    assert_eq!(run(None), run(Some(give.clone())), "{text}");
}

/// Compiled code can name the Rust type of every class.
#[test]
fn the_types_of_all_classes_can_be_named() {
    let registry = castanet_classes::Registry::new();
    let own = registry.classes().into_iter().filter(|s| s.module.starts_with("castanet_elements::"));
    let mut text = String::from(
        "pub const SITES: &[u32] = &[];\npub const ENTRIES: &[(u32, u32, castanet_runtime::compiled::Entry)] = &[];\n",
    );
    let mut n = 0;
    for spec in own {
        let _ = writeln!(text, "pub type T{n} = {}::{};", spec.module, spec.type_name);
        n += 1;
    }
    assert!(n > 150, "{n} classes");
    let library = code::build(&text, 7, None).unwrap_or_else(|e| panic!("{e}"));
    assert!(code::load("test", &library, Some(7)).unwrap_or_else(|e| panic!("{e}")).sites().is_empty());
}

#[test]
fn code_of_another_configuration_is_refused() {
    let text = "pub const SITES: &[u32] = &[];\npub const ENTRIES: &[(u32, u32, castanet_runtime::compiled::Entry)] = &[];\n";
    let library = code::build(text, 1, None).unwrap_or_else(|e| panic!("{e}"));
    let refused = |bytes: &[u8], print| {
        code::load("a.click", bytes, Some(print)).err().map(|e| e.message).unwrap_or_default()
    };
    assert_eq!(refused(&library, 1), "");
    assert_eq!(
        refused(&library, 2),
        "a.click: the compiled code is not used: it was compiled for another configuration"
    );
    // Damaged libraries and other files are refused.
    let mut damaged = library.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert!(refused(&damaged, 1).contains("damaged"), "{}", refused(&damaged, 1));
    assert!(
        refused(&library[..middle], 1).contains("not a loadable package"),
        "{}",
        refused(&library[..middle], 1)
    );
    assert!(refused(b"", 1).contains("not a shared library"), "{}", refused(b"", 1));
}

/// A panic of an element that compiled code calls is reported and counted as without code.
#[test]
fn a_panic_of_an_element_has_the_same_result_with_code() {
    let texts = [
        "s :: InfiniteSource(LIMIT 9, BURST 1, STOP true) -> Paint(1) -> f :: FaultyAction -> c :: Counter -> Discard",
        "s :: InfiniteSource(LIMIT 9, BURST 1, STOP true) -> Paint(1) -> f :: FaultyElement -> c :: Counter -> Discard",
    ]
    .map(str::to_string);
    let many = Many::compile(&texts);
    for (i, text) in texts.iter().enumerate() {
        let run = |code: Option<Arc<dyn LoadCode>>| {
            let (mut options, log) = simulated(1);
            (options.code, options.on_panic) = (code, OnPanic::Continue);
            let mut r = try_router_with(text, options, faulty).unwrap();
            r.run().unwrap();
            r.ledger().check();
            let drops: Vec<_> = r.drops().into_iter().map(|((e, reason), n)| (e, reason.name(), n)).collect();
            let c = r.find("c");
            (log.lines(), drops, r.read(c, "count", "").unwrap())
        };
        let give = many.one(i);
        assert!(!give.0.entries().is_empty());
        let plain = run(None);
        assert_eq!(plain.2, "6");
        assert_eq!(run(Some(give)), plain, "{text}");
    }
}

/// A panic of the compiled code itself.
#[test]
fn a_panic_in_the_code_is_a_panic_of_an_element() {
    let text =
        "InfiniteSource(LIMIT 9, BURST 1, STOP true) -> p :: Paint(1) -> c :: Counter -> Discard".to_string();
    let faulty = |source: String| {
        let chain = "fn f1_paint_0(w: &mut Walk<'_, '_>, p: Packet) -> bool {\n";
        assert!(source.contains(chain), "{source}");
        source.replace(chain, &format!("{chain}    if p.anno_u8(16) == 0 {{ panic!(\"own code\"); }}\n"))
    };
    let many = Many::changed(std::slice::from_ref(&text), faulty);
    let (mut options, log) = simulated(1);
    options.code = Some(many.one(0));
    options.on_panic = OnPanic::Continue;
    let mut r = try_router(&text, options).unwrap();
    r.run().unwrap();
    r.ledger().check();
    let c = r.find("c");
    assert_eq!(r.read(c, "count", "").unwrap(), "0");
    let lost: u64 = r.drops().into_iter().filter(|d| d.0.1.name() == "panicked").map(|d| d.1).sum();
    assert!(lost == 9 && log.lines()[0].contains("own code"), "{lost} {:?}", log.lines());
}
