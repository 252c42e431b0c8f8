// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are cut into parts do the same, and the kernel takes large ones. A refusal changes nothing.

use crate::frames::{Random, checksum};
use crate::world::{World, classes};
use crate::{Frames, all, classes_in, compare, conf, finish, graphs, start};
use castanet_element::prelude::Origin;
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_testkit::namespace::inside_with_bpf;
use std::fmt::Write as _;
use std::sync::Arc;

#[test]
fn programs_in_parts_do_the_same() {
    for (number, world) in (0..).zip([World::in_parts::<1>, World::in_parts::<60>, World::in_parts::<250>]) {
        let (ran, up, gone) = graphs::random_graphs_in(world, 1000 + 30 * number..1030 + 30 * number, 120);
        assert!(ran > 25 && up > 300 && gone > 300, "{ran} {up} {gone}");
        conf::configurations_in(world, 200, 40 + number);
    }
    classes_in(all(), World::in_parts::<1>, 100);
}

#[test]
fn parts_do_the_same_in_the_kernel() {
    inside_with_bpf("split::parts_do_the_same_in_the_kernel", || {
        if let Err(e) = World::try_kernel() {
            return println!("SKIP: parts_do_the_same_in_the_kernel: {e}");
        }
        let worlds = [
            World::in_parts_with_kernel::<1>,
            World::in_parts_with_kernel::<60>,
            World::in_parts_with_kernel::<250>,
        ];
        for (number, world) in (0..).zip(worlds) {
            graphs::random_graphs_in(world, 2000 + 8 * number..2008 + 8 * number, 60);
            conf::configurations_in(world, 40, 70 + number);
        }
        large_firewall_in(World::with_kernel);
    });
}

/// A packet to a port of a network.
fn frame(network: u32, port: u16, protocol: u8) -> Vec<u8> {
    let [high, low] = (network as u16).to_be_bytes();
    let mut ip = vec![0x45u8, 0, 0, 46, 1, 2, 0, 0, 64, protocol, 0, 0, 10, high, low, 2, 10, 0, 1, 2];
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend([4, 0]);
    ip.extend(port.to_be_bytes());
    ip.resize(46, 0);
    [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 8, 0][..], &ip].concat()
}

/// A firewall with 3,000 rules. Its program has several parts.
fn large_firewall_in(world: fn() -> World) {
    let mut rules = String::new();
    for n in 0..3000u32 {
        let (network, port) = (format!("10.{}.{}.0/24", n / 256, n % 256), 1000 + n % 7);
        let _ = match n % 3 {
            0 => write!(rules, "deny src net {network} and udp dst port {port}, "),
            1 => write!(rules, "allow src net {network} and tcp dst port {port}, "),
            _ => write!(rules, "deny src net {network}, "),
        };
    }
    let text = format!(
        "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> rules :: IPFilter({rules} allow icmp, allow udp)
         -> seen :: Counter -> Unstrip(14) -> Queue -> ToDevice(eth1);"
    );
    let mut random = Random::new(7);
    let frames: Frames = (0..150)
        .map(|_| {
            let (network, port) = (random.below(3100) as u32, 1000 + random.below(8) as u16);
            ("eth0", frame(network, port, random.of(&[1, 6, 17])))
        })
        .collect();
    let world = compare(&text, &frames, world);
    let (up, gone, _) = world.ways();
    println!("{} parts, {up} up, {gone} not", world.parts());
    assert!(world.parts() > 1 && gone == 150, "{} parts, {gone}", world.parts());
    assert!((20..130).contains(&world.sent().len()), "{} passed", world.sent().len());
}

/// Loads configurations of a world.
struct Texts;
impl Loader for Texts {
    fn load(&self, _: Origin, name: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        let loaded = Loaded::from_text(name, text.as_bytes(), &[], classes());
        loaded.map(|(loaded, _)| loaded).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
}

/// Swaps a router for one with another element, of which the kernel refuses the code of an element. Returns the messages.
fn refused_swap(world: &World, wrong: Option<&'static str>) -> Vec<String> {
    let old = "FromDevice(eth0) -> Strip(14) -> check :: CheckIPHeader -> ttl :: DecIPTTL -> rules :: IPFilter(allow udp)
        -> Unstrip(14) -> Queue -> ToDevice(eth1);";
    let new = old.replace("-> ttl", "-> new :: Null -> ttl").replace('\n', "");
    let text = format!("{old} Script(wait 0.1s, write hotconfig {new}, wait 0.2s);");
    for at in 0..200 {
        world.receive("eth0", 1 + at, frame(0, 80, 17));
    }
    let (mut router, log) = start(&text, world);
    router.running().set_loader(Arc::new(Texts));
    router.running().allow_swaps();
    router.start_in_kernel(Arc::new(world.clone())).unwrap();
    world.spoil(wrong);
    let seen = finish(router, &log, world);
    assert_eq!(world.fault(), None);
    assert_eq!(seen.sent.len(), 200, "{:?}", seen.messages);
    // All packets stay in the kernel, after the refusal too.
    assert_eq!((world.ways().0, world.ways().1), (0, 200));
    let is_new = seen.handlers.keys().any(|h| h.starts_with("new."));
    assert_eq!(is_new, wrong.is_none(), "{:?}", seen.messages);
    seen.messages
}

#[test]
fn the_old_router_goes_on_when_the_kernel_refuses_the_new_one() {
    assert!(refused_swap(&World::default(), None).iter().all(|m| !m.contains("refused")));
    let messages = refused_swap(&World::default(), Some("ttl"));
    let wanted = "the kernel refused the program for eth0 at element 'ttl' (DecIPTTL)";
    assert!(messages.iter().any(|m| m.contains(wanted)), "{messages:?}");
}

#[test]
fn a_router_whose_change_the_kernel_refuses_goes_on_at_user_level() {
    let text = "FromDevice(eth0) -> s :: Switch(0) -> Queue -> ToDevice(eth1); s [1] -> Discard;
        Script(wait 100ms, write s.switch 1, wait 200ms, stop);";
    let run = |in_kernel: bool, refuses: bool| {
        let world = World::default();
        (0..200).for_each(|at| world.receive("eth0", 1 + at, frame(0, 80, 17)));
        let (mut router, log) = start(text, &world);
        if in_kernel {
            router.start_in_kernel(Arc::new(world.clone())).unwrap();
        }
        if refuses {
            world.refuse();
        }
        let seen = finish(router, &log, &world);
        assert_eq!(world.fault(), None);
        let fell_back =
            seen.messages.iter().any(|m| m.ends_with("runs at user level, not in the kernel: refused"));
        assert_eq!(fell_back, refuses, "{:?}", seen.messages);
        (seen.sent.len(), seen.ledger)
    };
    let wanted = run(false, false);
    assert!((90..110).contains(&wanted.0), "{}", wanted.0);
    assert_eq!(run(true, false), wanted);
    assert_eq!(run(true, true), wanted);
}

#[test]
fn refusals_of_the_kernel_name_the_element() {
    inside_with_bpf("split::refusals_of_the_kernel_name_the_element", || {
        if let Err(e) = World::try_kernel() {
            return println!("SKIP: refusals_of_the_kernel_name_the_element: {e}");
        }
        for (element, class) in [("ttl", "DecIPTTL"), ("rules", "IPFilter"), ("check", "CheckIPHeader")] {
            for world in [World::with_kernel, World::in_parts_with_kernel::<60>] {
                let messages = refused_swap(&world(), Some(element));
                let wanted = format!(
                    "the kernel refused the program for eth0 at element '{element}' ({class}): it reads"
                );
                messages.iter().filter(|m| m.contains("refused")).for_each(|m| println!("{m}"));
                assert!(messages.iter().any(|m| m.contains(&wanted)), "{messages:?}");
            }
        }
    });
}
