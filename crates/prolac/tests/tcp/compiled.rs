// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiled TCP does what the interpreted one does: it replays what the host and the interpreted TCP told each other.

use super::network::{Faults, Network};
use super::states::{self, Table};
use super::{EXTENSIONS, has, subsets, tcp};
use castanet_prolac::load::Extensions;
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::rust::compile;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The lines of a trace that are left.
const LIBRARY: &str = r#"
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
pub struct Replay { pub lines: RefCell<VecDeque<String>>, pub next: Cell<u32> }
impl Replay {
    /// Compares a call of the host with the trace, and returns the result that stands there.
    pub fn step(&self, call: String) -> String {
        let line = self.lines.borrow_mut().pop_front().expect("a line");
        let (want, result) = line.split_once("= ").expect("a call of the host");
        assert_eq!(call.trim_end(), want.trim_end());
        result.to_string()
    }
    pub fn number(&self, call: String) -> u32 {
        self.step(call).parse().expect("a number")
    }
}
pub fn hex(bytes: &[Cell<u8>]) -> String {
    bytes.iter().map(|b| format!("{:02x}", b.get())).collect()
}
pub fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}
"#;

/// The host function of the extension Cubic.
const CUBIC_HOST: &str = r#"
    fn milliseconds(&self, _: &Cx<'_, Self>) -> u32 { self.number("milliseconds".into()) }
"#;

/// The host functions of the extensions Ecn and Source-Route.
const ECN_HOST: &str = r#"
    fn may_be_marked(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, may: bool) { self.step(format!("may-be-marked {}", u8::from(may))); }
"#;
const ROUTE_HOST: &str = r#"
    fn take_return_route(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 { self.number("take-return-route".into()) }
"#;

/// The host of a program, and the replay of a trace.
const HOST: &str = r#"
fn content<H: Host>(cx: &Cx<'_, H>, b: Bytes, n: u32) -> String { crate::hex(&rest(&cx.packets, b)[..n as usize]) }
fn at(host: &crate::Replay, b: Bytes) -> String {
    format!("{}:{}", if b.packet == 1 { host.next.get() } else { b.packet }, b.offset)
}
impl Host for crate::Replay {
    // EXTENSIONS
    // A segment is sent before the next one is begun, so all are written in one buffer.
    fn new_segment(&self, cx: &Cx<'_, Self>) -> Bytes {
        let packet = self.number("new-segment".into());
        self.next.set(self.next.get() + 1);
        assert_eq!(packet, self.next.get());
        let b = Bytes { packet: 1, offset: 0 };
        rest(&cx.packets, b).iter().for_each(|byte| byte.set(0));
        b
    }
    fn transmit(&self, cx: &Cx<'_, Self>, _: Ptr<Tcb>, s: Bytes, n: u32) {
        self.step(format!("transmit {} {n} {}", at(self, s), content(cx, s, n)));
    }
    fn checksum(&self, _: &Cx<'_, Self>, s: Bytes, n: u32) -> u16 { self.number(format!("checksum {} {n}", at(self, s))) as u16 }
    fn initial_seqno(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 { self.number("initial-seqno".into()) }
    fn ticks_begun(&self, _: &Cx<'_, Self>) -> u32 { self.number("ticks-begun".into()) }
    fn send_queue(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 { self.number("send-queue".into()) }
    fn copy_out(&self, cx: &Cx<'_, Self>, _: Ptr<Tcb>, s: Bytes, from: u32, n: u32) {
        let data = crate::bytes(&self.step(format!("copy-out {} {from} {n}", at(self, s))));
        rest(&cx.packets, s).iter().zip(data).for_each(|(c, b)| c.set(b));
    }
    fn drop_sent(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, n: u32) { self.step(format!("drop-sent {n}")); }
    fn receive_room(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) -> u32 { self.number("receive-room".into()) }
    fn deliver(&self, cx: &Cx<'_, Self>, _: Ptr<Tcb>, d: Bytes, n: u32) {
        self.step(format!("deliver {} {n} {}", at(self, d), content(cx, d, n)));
    }
    fn hold(&self, cx: &Cx<'_, Self>, _: Ptr<Tcb>, d: Bytes, n: u32) -> u32 {
        self.number(format!("hold {} {n} {}", at(self, d), content(cx, d, n)))
    }
    fn deliver_held(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, k: u32, skip: u32) { self.step(format!("deliver-held {k} {skip}")); }
    fn drop_held(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, k: u32) { self.step(format!("drop-held {k}")); }
    fn unanswered(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) { self.step("unanswered".into()); }
    fn connected(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) { self.step("connected".into()); }
    fn urgent(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, n: u32) { self.step(format!("urgent {n}")); }
    fn end_of_data(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>) { self.step("end-of-data".into()); }
    fn disconnected(&self, _: &Cx<'_, Self>, _: Ptr<Tcb>, why: i32) { self.step(format!("disconnected {why}")); }
}
pub fn replay(trace: &str) {
    let lines = trace.lines().map(str::to_string).collect();
    let (host, state) = (crate::Replay { lines: std::cell::RefCell::new(lines), next: Cell::new(0) }, State::default());
    let (mut interface, mut tcb) = (Ptr::new(0), Ptr::new(0));
    loop {
        let Some(line) = host.lines.borrow_mut().pop_front() else { return };
        let (call, packet) = line.strip_prefix("call ").expect("a call").split_once('=').expect("a packet");
        let mut packets = [crate::bytes(packet), vec![0; 1500]];
        let cells = packets.each_mut().map(|p| Cell::from_mut(p.as_mut_slice()).as_slice_of_cells());
        let cx = Cx { host: &host, state: &state, packets: Packets::new(cells) };
        host.next.set(0);
        let words: Vec<&str> = call.split(' ').collect();
        let number = |n: usize| words[n].parse::<u32>().expect("a number");
        if interface == Ptr::new(0) {
            interface = tcp_interface::create(&cx);
        }
        let this = cx.tcp_interface(interface);
        match words[0] {
            "connection" => tcb = tcp_interface::connection(&cx, this, number(1) as u16, number(2) as u16),
            "listen" => drop(tcp_interface::listen(&cx, this, tcb)),
            "connect" => drop(tcp_interface::connect(&cx, this, tcb)),
            "send" => drop(tcp_interface::send(&cx, this, tcb)),
            "send-urgent" => drop(tcp_interface::send_urgent(&cx, this, tcb)),
            "receive" => drop(tcp_interface::receive(&cx, this, tcb)),
            "close" => drop(tcp_interface::close(&cx, this, tcb)),
            "close-full" => drop(tcp_interface::close_full(&cx, this, tcb, number(1))),
            "user-timeout" => tcp_interface::user_timeout(&cx, this, tcb, number(1)),
            "keep-alive" => tcp_interface::keep_alive(&cx, this, tcb),
            "keep-alive-after" => tcp_interface::keep_alive_after(&cx, this, tcb, number(1)),
            "abort" => drop(tcp_interface::abort(&cx, this, tcb)),
            "output" => tcp_interface::output(&cx, this, tcb),
            "discover-path-mtu" => tcp_interface::discover_path_mtu(&cx, this, tcb),
            "icmp-error" => drop(tcp_interface::icmp_error(
                &cx, this, tcb, number(1), number(2), number(3), number(4), number(5),
            )),
            "use-ecn" => tcp_interface::use_ecn(&cx, this, tcb, number(1) != 0),
            "use-route" => tcp_interface::use_route(&cx, this, tcb, number(1)),
            "input-noted" => {
                tcp_interface::input_noted(&cx, this, tcb, Bytes { packet: 0, offset: 0 }, number(1), number(2))
            }
            "stray" => tcp_interface::stray(&cx, this, Bytes { packet: 0, offset: 0 }, number(1)),
            "input" => tcp_interface::input(&cx, this, tcb, Bytes { packet: 0, offset: 0 }, number(1)),
            "slow-timeout" => tcp_interface::slow_timeout(&cx, this, tcb),
            "fast-timeout" => tcp_interface::fast_timeout(&cx, this, tcb),
            other => panic!("{other}"),
        }
    }
}
"#;

fn rustc(args: &[&str], folder: &Path) {
    let out =
        Command::new("rustc").args(["--edition", "2024"]).args(args).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}", errors.chars().take(4_000).collect::<String>());
}

/// Chooses one set for each set of the first four extensions: with every set of the two options of RFC 7323, and half of the sets
/// that have what another extension refines with that extension.
fn is_compiled(set: &Extensions) -> bool {
    let first = || EXTENSIONS.iter().take(4).map(|(name, ..)| has(set, name));
    let even = first().filter(|has| *has).count() % 2 == 0;
    let options = EXTENSIONS[4..6].iter().map(|(name, ..)| has(set, name)).eq(first().take(2));
    let needs_met = |needs: &Option<&str>| needs.is_some_and(|n| has(set, n));
    options && EXTENSIONS[6..8].iter().all(|(name, _, needs)| has(set, name) == (even && needs_met(needs)))
}

#[test]
fn compiled_programs_replay_the_interpreted_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (mut library, mut main, mut runtime) = (LIBRARY.to_string(), String::new(), String::new());
    let last = subsets().len() - 1;
    let some = subsets().into_iter().enumerate().filter(|(_, set)| is_compiled(set));
    for (i, extensions) in some {
        let program = tcp(&extensions);
        let seed = 1_000 + i as u64;
        let mut n = Network::new(
            &program,
            seed,
            Faults { loss: 8, repeat: 4, jitter: 60, corrupt: 0 },
            [12_000, 7_000],
        );
        n.run();
        n.check();
        for end in 0..2 {
            std::fs::write(folder.path().join(format!("trace{i}-{end}")), n.trace(end)).unwrap();
        }
        // The tables, whose traces are separated by empty lines.
        let ends = i == 0 || i == last;
        if ends {
            let mut table = states::traces(&program, Table::States);
            for more in [Table::Options, Table::Sack, Table::PathMtu, Table::Ecn, Table::SourceRoute] {
                table.extend((i == last).then(|| states::traces(&program, more)).into_iter().flatten());
            }
            let table = table.join("\n");
            std::fs::write(folder.path().join(format!("table{i}")), table).unwrap();
        }
        let mut sets = vec![Optimisations::ALL];
        if ends {
            sets.push(Optimisations::NONE);
        }
        for (s, set) in sets.into_iter().enumerate() {
            let compiled = compile(&program, set).text;
            let (text, rest) = compiled.split_once("/// Runtime of compiled Prolac").unwrap();
            runtime = format!("/// Runtime of compiled Prolac{rest}");
            let more = [("Cubic", CUBIC_HOST), ("Ecn", ECN_HOST), ("Source-Route", ROUTE_HOST)];
            let more = more.into_iter().filter(|(name, _)| has(&extensions, name));
            let host = HOST.replace("// EXTENSIONS", &more.map(|(_, text)| text).collect::<String>());
            let _ = writeln!(library, "pub mod p{i}_{s} {{\npub use crate::runtime;\n{text}\n{host}}}");
            for end in 0..2 {
                let _ = writeln!(main, "programs::p{i}_{s}::replay(include_str!(\"trace{i}-{end}\"));");
            }
            if ends {
                let _ = writeln!(
                    main,
                    "include_str!(\"table{i}\").split(\"\\n\\n\").for_each(programs::p{i}_{s}::replay);"
                );
            }
        }
    }
    library.push_str(&runtime);
    std::fs::write(folder.path().join("programs.rs"), &library).unwrap();
    std::fs::write(folder.path().join("main.rs"), format!("fn main() {{\n{main}}}")).unwrap();
    if let Ok(keep) = std::env::var("KEEP_PROGRAMS") {
        std::fs::copy(folder.path().join("programs.rs"), keep).unwrap();
    }
    rustc(&["--crate-type", "rlib", "-D", "warnings", "programs.rs"], folder.path());
    rustc(&["main.rs", "--extern", "programs=libprograms.rlib"], folder.path());
    let out = Command::new(folder.path().join("main")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
