// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the checkers of transport headers have in common: their arguments, their counts, their reports.

use castanet_element::prelude::*;

/// Arguments of the checkers of transport headers.
#[derive(Args)]
pub struct CheckArgs {
    /// Whether to report every bad packet, not only the first.
    #[arg(keyword, default = false)]
    pub(crate) verbose: bool,
    /// Whether the handler drop_details tells what was wrong how often.
    #[arg(keyword, default = false)]
    pub(crate) details: bool,
}

/// What can be wrong, in the order of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another protocol.
    Protocol,
    /// Lengths that contradict each other or what is there.
    Length,
    /// A wrong checksum.
    Checksum,
}

/// How many packets had which fault.
#[derive(Debug, Default)]
pub(crate) struct Faults([Count; 3]);

impl Faults {
    fn total(&self) -> u64 {
        self.0.iter().map(|c| c.get()).fold(0, u64::wrapping_add)
    }

    /// Goes on with what another one counted (hot swap).
    pub(crate) fn take(&mut self, old: &mut Faults) {
        self.0.iter_mut().zip(&mut old.0).for_each(|(mine, theirs)| mine.take(theirs));
    }

    /// Counts a bad packet of protocol `name`, reports it if that is due with `prefix` before, and says what becomes of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn bad(
        &mut self,
        fault: Fault,
        (prefix, name): (&str, &str),
        args: &CheckArgs,
        cx: &Cx<'_>,
    ) -> Verdict {
        if args.verbose || self.total() == 0 {
            cx.message(&format!("{prefix}{name} header check failed: {}", text(fault, name)));
        }
        if let Some(n) = self.0.get_mut(fault as usize) {
            n.add(1);
        }
        cx.out_or(1, Reason::BadTransport)
    }

    /// What the handlers drops and drop_details answer.
    pub(crate) fn read(&self, handler: &str, name: &str, args: &CheckArgs) -> Result<String, String> {
        if handler == "drops" {
            return Ok(self.total().to_string());
        }
        if !args.details {
            return Err("the element keeps no details without 'DETAILS true'".into());
        }
        let lines = [Fault::Protocol, Fault::Length, Fault::Checksum].into_iter().zip(self.0);
        Ok(lines.map(|(fault, n)| format!("{}\t{}\n", n.get(), text(fault, name))).collect())
    }
}

fn text(fault: Fault, name: &str) -> String {
    match fault {
        Fault::Protocol => format!("not {name}"),
        Fault::Length => "bad packet length".into(),
        Fault::Checksum => format!("bad {name} checksum"),
    }
}

/// What all checkers but for their `examine` are: handlers, effects, the action.
macro_rules! checker {
    ($class:ident, $name:literal, $prefix:expr) => {
        impl Lifecycle for $class {
            fn read(&mut self, handler: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
                self.faults.read(handler, $name, &self.args)
            }
            fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), String> {
                self.faults.take(&mut old.faults);
                Ok(())
            }
            /// The report of the first bad packet alone is no reason to run packet by packet.
            fn effects(&self, declared: Effects) -> Effects {
                if self.args.verbose { declared } else { Effects::NONE }
            }
        }

        impl Action for $class {
            #[inline]
            fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
                let Some(network) = p.network() else { return cx.out_or(1, Reason::NoIpHeader) };
                match examine(network) {
                    Ok(()) => Verdict::Next,
                    Err(fault) => {
                        let prefix: fn(&Cx<'_>) -> String = $prefix;
                        self.faults.bad(fault, (&prefix(cx), $name), &self.args, cx)
                    }
                }
            }
        }
    };
}
pub(crate) use checker;

/// Holds a checker against a table of what is wrong with good packets that were changed: every reaction, count and
/// message.
#[cfg(test)]
pub(crate) fn check_table<T: Build + Action>(
    good: &[u8],
    table: &[(&str, Vec<u8>, Option<Fault>)],
    (prefix, name): (&str, &str),
) {
    #![allow(clippy::unwrap_used)]
    use castanet_element::kit::{Kit, packet};
    let marked = |data: &[u8]| {
        let mut p = packet(data);
        p.set_network_header(0, usize::from(data.first().map_or(0, |b| b & 15)) * 4);
        p
    };
    for (what, data, fault) in table {
        for outputs in [1, 2] {
            let mut kit = Kit::<T>::with_ports("DETAILS true", 1, outputs).unwrap();
            let out = kit.act((0..3).map(|_| marked(data)));
            let ports: Vec<usize> = out.iter().map(|o| o.0).collect();
            assert!(out.iter().all(|o| o.1.data() == &data[..]), "{what}: unchanged");
            match fault {
                None => {
                    assert_eq!((ports, kit.all_dropped()), (vec![0; 3], 0), "{what}");
                    assert_eq!((kit.read("drops").unwrap(), kit.messages().len()), ("0".into(), 0), "{what}");
                }
                Some(f) => {
                    let drops = if outputs == 1 { 3 } else { 0 };
                    assert_eq!(kit.dropped(Reason::BadTransport), drops, "{what}");
                    assert_eq!(ports, vec![1; 3 - drops as usize], "{what}");
                    let line = format!("{prefix}{name} header check failed: {}", text(*f, name));
                    assert_eq!(kit.messages(), [line], "{what}: once");
                    assert_eq!(kit.read("drops").unwrap(), "3", "{what}");
                    let details = kit.read("drop_details").unwrap();
                    assert!(details.contains(&format!("3\t{}\n", text(*f, name))), "{what}: {details}");
                }
            }
        }
    }
    for n in 0..good.len() {
        let mut kit = Kit::<T>::new("VERBOSE true").unwrap();
        assert!(kit.act([marked(&good[..n]), packet(&good[..n])]).is_empty(), "cut to {n}");
        assert_eq!(
            (kit.dropped(Reason::BadTransport), kit.dropped(Reason::NoIpHeader)),
            (1, 1),
            "cut to {n}"
        );
        assert_eq!(kit.messages().len(), 1);
        assert!(kit.read("drop_details").is_err());
    }
    assert!(Kit::<T>::new("VERBOSE maybe").is_err());
}
