// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of the classes that check transport headers: arguments, counts and messages.

use castanet_element::count;
use castanet_element::prelude::*;
use std::marker::PhantomData;

/// Arguments of the classes that check transport headers.
#[derive(Args)]
pub struct CheckArgs {
    /// Whether to print a message for every bad packet, not only for the first.
    #[arg(keyword, default = false)]
    pub(crate) verbose: bool,
    /// Whether the handler drop_details reports the number of bad packets by fault.
    #[arg(keyword, default = false)]
    pub(crate) details: bool,
}

/// The faults of a packet, in the order in which they are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The packet is of another protocol.
    Protocol,
    /// The lengths in the headers contradict each other or exceed the packet.
    Length,
    /// The checksum is wrong.
    Checksum,
}

/// A transport protocol, whose packets a `Checker` checks.
pub trait Protocol: Send + 'static {
    /// The name of the protocol in messages.
    const NAME: &'static str;
    /// The text of each fault in messages, in the order of [`Fault`].
    const FAULTS: &'static [&'static str; 3];
    /// Checks a packet, and returns its first fault as the error. `network` holds the packet's bytes from the network
    /// header on.
    fn examine(network: &[u8]) -> Result<(), Fault>;
    /// Returns the text at the start of each message.
    fn prefix(cx: &Cx<'_>) -> String {
        format!("{}: ", cx.declaration())
    }
}

/// The engine of the classes that check transport headers.
#[derive(Counts)]
pub struct Checker<P: Protocol> {
    args: CheckArgs,
    /// Packets that failed a test.
    #[count(name = "drops", unit = "packets", hidden, label(reason = P::FAULTS))]
    faults: [Count; 3],
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Checker<P> {
    /// Checks a packet. A good packet passes, and a bad one leaves on output 1 or is dropped.
    #[inline]
    pub(crate) fn check(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network() else { return cx.out_or(1, Reason::NoIpHeader) };
        match P::examine(network) {
            Ok(()) => Verdict::Next,
            Err(fault) => self.bad(fault, cx),
        }
    }
    /// Counts a bad packet, and emits it on output 1 or drops it. Prints a message if it is the first or VERBOSE is
    /// set.
    #[cold]
    #[inline(never)]
    fn bad(&mut self, fault: Fault, cx: &mut Cx<'_>) -> Verdict {
        if self.args.verbose || self.drops().0 == 0 {
            let (prefix, text) = (P::prefix(cx), P::FAULTS[fault as usize]);
            cx.message(&format!("{prefix}{} header check failed: {text}", P::NAME));
        }
        self.faults[fault as usize].add(1);
        cx.out_or(1, Reason::BadTransport)
    }
}

#[handlers]
impl<P: Protocol> Checker<P> {
    /// Packets that failed a test.
    #[read(unit = "packets", merge = sum)]
    fn drops(&self) -> Counted {
        Counted(self.faults.iter().map(|c| c.get()).fold(0, u64::wrapping_add))
    }
    /// Packets that failed a test, by fault; can be read only if DETAILS is true.
    #[read(merge = sum)]
    fn drop_details(&self) -> Result<Table, HandlerError> {
        if !self.args.details {
            return Err("the element keeps no details without 'DETAILS true'".into());
        }
        Ok(Table(count::table(&self.faults, P::FAULTS)))
    }
}

impl<P: Protocol> Lifecycle for Checker<P> {
    /// Without VERBOSE, returns no effects: a message is printed only for the first bad packet, so packets may be
    /// processed in batches.
    fn effects(&self, declared: Effects) -> Effects {
        if self.args.verbose { declared } else { Effects::empty() }
    }
}

impl<P: Protocol> Engine for Checker<P> {
    type Args = CheckArgs;
    fn build(args: CheckArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Checker { args, faults: Default::default(), protocol: PhantomData })
    }
    fn args(&mut self) -> &mut CheckArgs {
        &mut self.args
    }
}

/// Runs a checker on variants of a good packet, and compares each output, count and message with a table.
#[cfg(test)]
pub(crate) fn check_table<T: Build + Action>(
    good: &[u8],
    table: &[(&str, Vec<u8>, Option<Fault>)],
    (prefix, name): (&str, &str),
) {
    #![allow(clippy::unwrap_used)]
    let text = |f: Fault| match f {
        Fault::Protocol => format!("not {name}"),
        Fault::Length => "bad packet length".into(),
        Fault::Checksum => format!("bad {name} checksum"),
    };
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
                    let line = format!("{prefix}{name} header check failed: {}", text(*f));
                    assert_eq!(kit.messages(), [line], "{what}: once");
                    assert_eq!(kit.read("drops").unwrap(), "3", "{what}");
                    let details = kit.read("drop_details").unwrap();
                    assert!(details.contains(&format!("3\t{}\n", text(*f))), "{what}: {details}");
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
