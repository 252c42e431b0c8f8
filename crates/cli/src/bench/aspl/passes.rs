// SPDX-License-Identifier: MIT OR Apache-2.0
//! The passes that `castanet bench aspl` applies: the tools, from one configuration or archive to another.

use crate::classes::BuiltIn;
use crate::devirtualize::{self, Choice};
use crate::fastclassifier::forward;
use crate::load::{Source, archived, elaborate, elaborate_with, load_in};
use crate::network::{Network, combined};
use crate::uncombine::router_of;
use crate::xform::Rules;
use castanet_bench::aspl::base::Interface;
use castanet_bench::aspl::figures::{DV, FC, MR, NO_OPS, XF};
use castanet_bench::aspl::{Base, Loader, NO_OP_PATTERNS, Pass, classes};
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_graph::fastclassifier::Options;
use castanet_graph::network::Order;
use castanet_graph::undead::undead;
use castanet_graph::xform::{Direction, Shipped};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Flat, Sources, Unknown, print};
use castanet_runtime::compiled::{self, LoadCode};
use std::cell::RefCell;
use std::sync::Arc;

/// All passes.
pub const PASSES: [Pass; 5] = [
    Pass { name: MR, apply: without_arp },
    Pass { name: XF, apply: combination_elements },
    Pass { name: FC, apply: fast_classifiers },
    Pass { name: DV, apply: devirtualized },
    Pass { name: NO_OPS, apply: no_ops },
];

/// The name of the router in the network of [`without_arp`].
const ROUTER: &str = "R";

fn source(configuration: &[u8]) -> Source {
    Source { bytes: configuration.to_vec(), ..Source::text("config", "", Vec::new()) }
}

/// Returns the first error as text.
fn first_error(sources: &Sources, diagnostics: &[Diagnostic]) -> Result<(), String> {
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(castanet_lang::render::render_pretty(sources, diagnostics, false));
    }
    Ok(())
}

fn written(flat: &Flat) -> Result<Vec<u8>, String> {
    archived(&print::driver(flat), &flat.archive)
}

/// Applies rules to a configuration. At least one of them must match.
fn transformed(flat: Flat, classes: &dyn Classes, patterns: &str, text: &str) -> Result<Flat, String> {
    let failed = RefCell::new(Ok(()));
    let show = |sources: &Sources, diagnostics: &[Diagnostic]| {
        let done = first_error(sources, diagnostics);
        if done.is_err() {
            *failed.borrow_mut() = done;
        }
    };
    let mut rules = Rules::default();
    rules.add(&Source::text(patterns, text, Vec::new()), None, Direction::Forward, classes, &show);
    failed.into_inner()?;
    let outcome = rules.apply(flat, classes)?;
    if outcome.applied.is_empty() {
        return Err(format!("none of the patterns '{patterns}' matches"));
    }
    Ok(outcome.flat)
}

fn shipped(name: &str) -> Result<&'static str, String> {
    Shipped::named(name).map(|s| s.text).ok_or_else(|| format!("there are no patterns '{name}'"))
}

/// Replaces parts of a configuration, as `castanet xform` does.
fn xform(configuration: &[u8], patterns: &str, text: &str) -> Result<Vec<u8>, String> {
    let (flat, sources, diagnostics, classes) = elaborate(&source(configuration), None, Unknown::Opaque);
    first_error(&sources, &diagnostics)?;
    written(&transformed(flat, classes.as_ref(), patterns, text)?)
}

fn combination_elements(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
    xform(configuration, "ip", shipped("ip")?)
}

fn no_ops(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
    xform(configuration, "no-ops", NO_OP_PATTERNS)
}

/// Replaces the classifiers, as `castanet fastclassifier` does.
fn fast_classifiers(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
    let globals = Globals::Substitute;
    let (mut loaded, mut sources, classes) =
        elaborate_with(&source(configuration), None, Unknown::Opaque, globals);
    first_error(&sources, &loaded.diagnostics)?;
    let options = Options { combine: true, classes: true };
    let printer = |loaded: &castanet_lang::elaborate::Loaded, _: &Sources| print::driver(&loaded.flat);
    forward(&mut loaded, &mut sources, classes.as_ref(), globals, options, &printer)?;
    first_error(&sources, &loaded.diagnostics)?;
    written(&loaded.flat)
}

/// Compiles code for a configuration, as `castanet devirtualize` does.
fn devirtualized(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
    let available = BuiltIn::of(classes()).available(None);
    let loaded = load_in(&available, &source(configuration), Unknown::Error);
    first_error(&loaded.sources, &loaded.diagnostics)?;
    let flat = loaded.graph.flat;
    let text = print::driver(&flat);
    let failed = RefCell::new(Ok(()));
    let tell = |sources: &Sources, diagnostics: &[Diagnostic]| {
        *failed.borrow_mut() = first_error(sources, diagnostics);
    };
    let made = devirtualize::source(&available, text, flat.archive, &[], Choice::default(), &tell)?;
    match made {
        Some(made) => made.compile(&loaded.text, None),
        None => Err(failed.into_inner().err().unwrap_or_default()),
    }
}

/// Loads the code that [`devirtualized`] has put into archives. The benchmark adds elements to configurations, so their
/// fingerprints are not checked.
pub fn loader() -> Loader {
    Arc::new(Code)
}

struct Code;

impl LoadCode for Code {
    fn load(&self, graph: &Graph) -> Result<Option<Arc<dyn compiled::Code>>, String> {
        devirtualize::load("the archive", graph, None)
    }
}

/// The router at the other end of a link.
fn neighbour(interface: &Interface) -> String {
    let Interface { address, ether, .. } = interface;
    format!(
        "FromDevice(eth0) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
         kind [0] -> ARPResponder({address} {ether}) -> queue :: Queue -> ToDevice(eth0);
         kind [1] -> [1] arp :: ARPQuerier({address}, {ether}) -> queue;
         FromHost(host) -> [0] arp;
         kind [2] -> ToHost(host); kind [3] -> Discard;"
    )
}

/// Combines the router with a neighbour on each link, removes ARP from the links and the dead code that this leaves, and takes the
/// router out again (ASPLOS 2002, section 7.2).
fn without_arp(configuration: &[u8], base: &Base) -> Result<Vec<u8>, String> {
    let mut network = Network::default();
    network.routers.push((ROUTER.into(), source(configuration)));
    for (i, interface) in base.interfaces.iter().enumerate() {
        let name = format!("N{i}");
        network.links.push(format!("{ROUTER}.{}={name}.eth0", interface.sends).parse()?);
        network.links.push(format!("{name}.eth0={ROUTER}.{}", interface.receives).parse()?);
        network.routers.push((name, Source::text("neighbour", &neighbour(interface), Vec::new())));
    }
    let available = BuiltIn::all().available(None);
    let errors = RefCell::new(Vec::new());
    let show = |sources: &Sources, diagnostics: &[Diagnostic]| {
        errors.borrow_mut().extend(first_error(sources, diagnostics).err())
    };
    let combined = combined(network, &available, Unknown::Opaque, Order::Kept, show);
    let combined = combined.map_err(|more| [errors.take(), more].concat().join("\n"))?;
    let classes = available.packages.classes(available.built_in.registry().clone());
    let flat = transformed(combined.flat, &classes, "arp", shipped("arp")?)?;
    let (flat, _) = undead(router_of(&flat, Some(ROUTER))?, &classes);
    written(&flat)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_bench::Mode;
    use castanet_bench::aspl::figures::{LOADED, MODULARITY, ROWS, Row};
    use castanet_bench::aspl::{Ends, base, check, made, router};

    fn all() -> impl Iterator<Item = Row> {
        ROWS.into_iter().chain(LOADED).chain(MODULARITY)
    }

    #[test]
    fn configurations_send_the_same_frames() {
        for batch in [1, 32] {
            let rows: Vec<Row> = all().collect();
            check(&rows, batch, &PASSES, Some(&loader())).unwrap_or_else(|e| panic!("batch {batch}: {e}"));
        }
        // A pass that changes frames is found.
        fn other_ttl(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
            let text = String::from_utf8_lossy(configuration).into_owned();
            Ok(text.replace(":: DecIPTTL", ":: DecIPTTL(ACTIVE false)").into_bytes())
        }
        let wrong = [Pass { name: "XF", apply: other_ttl }];
        let error = check(&MODULARITY, 32, &wrong, None).unwrap_err();
        assert_eq!(error, "combination elements does not send the same frames as Base");
    }

    /// How many elements of each class a configuration has.
    fn classes_of(name: &str, ends: Ends) -> impl Fn(&str) -> usize {
        let base = base::router(ends, 32).unwrap();
        let row = all().find(|row| row.name == name).unwrap();
        let configuration = made(&row, &base, &PASSES).unwrap().unwrap();
        let (flat, ..) = elaborate(&source(&configuration), None, Unknown::Opaque);
        move |class| flat.elements.iter().filter(|e| e.class.starts_with(class)).count()
    }

    #[test]
    fn passes_do_what_their_names_say() {
        for ends in [Ends::Memory, Ends::Kept, Ends::Devices] {
            let base = classes_of("Base", ends);
            assert_eq!(
                [base("ARPQuerier"), base("ARPResponder"), base("IPInputCombo"), base("Null")],
                [2, 2, 0, 0]
            );
            let mr = classes_of("MR", ends);
            assert_eq!([mr("ARP"), mr("EtherEncap"), mr("Idle"), mr("RouterLink")], [0, 2, 0, 0]);
            let xf = classes_of("XF", ends);
            assert_eq!([xf("IPInputCombo"), xf("IPOutputCombo"), xf("Paint"), xf("DecIPTTL")], [2, 2, 0, 0]);
            let fc = classes_of("FC", ends);
            assert_eq!([fc("FastClassifier@@"), fc("Classifier")], [2, 0]);
            let both = classes_of("MR+XF+FC", ends);
            assert_eq!([both("ARP"), both("IPInputCombo"), both("FastClassifier@@")], [0, 2, 2]);
            let more = classes_of("combination elements and 8 no-ops", ends);
            for class in
                ["Null", "PushNull", "Strip", "Unstrip", "Truncate", "CheckLength", "DecIPTTL", "Suppressor"]
            {
                assert_eq!(more(class), 2, "{class}");
            }
        }
    }

    #[test]
    fn configurations_without_their_passes_are_left_out() {
        let base = base::router(Ends::Memory, 32).unwrap();
        let named = |name| ROWS.into_iter().find(|row| row.name == name).unwrap();
        assert!(made(&named("XF"), &base, &[]).is_none());
        assert!(made(&named("Base"), &base, &[]).unwrap().is_ok());
    }

    #[test]
    fn statements_go_into_archives() {
        let base = base::router(Ends::Memory, 8).unwrap();
        let row = ROWS.into_iter().find(|row| row.name == "FC").unwrap();
        let configuration = made(&row, &base, &PASSES).unwrap().unwrap();
        assert!(castanet_lang::archive::is_archive(&configuration));
        let longer = router::with_text(&configuration, router::MEASURED).unwrap();
        assert_eq!(router::run(&longer, Mode::plain(8), 2, None).unwrap().len(), 2);
        assert!(router::with_text(b"!<arch>\nx", "").is_err());
    }
}
