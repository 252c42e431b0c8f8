// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hook that the base protocol does not have, as in section 4.6 of the paper: an extension overrides the method that should call
//! the hook, and another one refines the hook. The base is not changed.

use super::network::End;
use super::{folder, named};
use castanet_prolac::load::{Extensions, Files, Folder};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::Program;
use castanet_prolac::stats::stats;

const HOOKUPS: &str = "hookup New-Hook \"new-hook.pc\";\nhookup Counter \"counter.pc\";\n";
const NEW_HOOK: &str = "
module New-Hook.TCB :> hookup TCB {
    give-up-hook :> void ::=;
}
module New-Hook.Timeout :> hookup Timeout {
    give-up ::= tcb->give-up-hook, super.give-up;
}
";
const COUNTER: &str = "
module Counter.TCB :> hookup TCB {
    field given-up :> uint;
    give-up-hook ::= super.give-up-hook, ++given-up;
}
";

/// The files of the TCP, and those of the two extensions.
struct More;

impl Files for More {
    fn read(&self, from: &str, name: &str) -> Result<(String, String), String> {
        match name {
            "new-hook.pc" => Ok((name.to_string(), NEW_HOOK.to_string())),
            "counter.pc" => Ok((name.to_string(), COUNTER.to_string())),
            _ => Folder.read(from, name),
        }
    }
}

fn program(extensions: &Extensions) -> Program {
    let path = folder().join("tcp.pc");
    let text = std::fs::read_to_string(&path).unwrap() + HOOKUPS;
    let mut sources = castanet_diagnostic::Sources::new();
    let file = sources.add(path.to_string_lossy(), text);
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &More, extensions);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    program
}

#[test]
fn an_extension_adds_a_hook() {
    let sets =
        [(named(&["New-Hook"]), false), (named(&["New-Hook", "Counter"]), true), (Extensions::All, true)];
    for (extensions, counter) in sets {
        let program = program(&extensions);
        assert_eq!(stats(&program, Optimisations::ALL).dispatches[2], 0);
        let mut end = End::new(&program, 1, [1000, 80], Vec::new());
        end.tcp("connect");
        for tick in 1..=601 {
            end.tcp("slow-timeout");
            let closed = tick == 601;
            assert_eq!(end.data.borrow().disconnected, closed.then_some(3));
            if counter {
                assert_eq!(end.field("given-up"), u32::from(closed));
            }
        }
    }
}
