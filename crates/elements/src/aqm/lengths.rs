// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the queues whose lengths a dropping policy adds up: those of its argument QUEUES, or the nearest queues.

use castanet_element::prelude::*;

/// The argument QUEUES: the numbers of the elements that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues(Vec<u32>);

impl ArgValue for Queues {
    const TYPE: &'static str = "elements";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Queues, ValueError> {
        let mut all = Vec::new();
        for name in text.split_ascii_whitespace() {
            let found = ElementRef::parse(name, cx)?;
            let number = u32::try_from(found.0).map_err(|_| format!("'{name}': no such element"))?;
            if !all.contains(&number) {
                all.push(number);
            }
        }
        if all.is_empty() { Err("expected names of queues".into()) } else { Ok(Queues(all)) }
    }
}

/// The queues, and the gauges that show how many packets wait in them.
#[derive(Default)]
pub(super) struct Lengths(Vec<(u32, Gauge)>);

impl Lengths {
    /// Finds the queues that `named` lists. Without `named`, finds the nearest queues by flow-based router context:
    /// upstream if packets are pulled, downstream if they are pushed. Prints a message if there are no such queues.
    pub(super) fn find(
        named: Option<&Queues>,
        pulled: bool,
        cx: &InitCx<'_>,
    ) -> Result<Lengths, ElementError> {
        let near = || if pulled { cx.storages_upstream(0) } else { cx.storages_downstream(0) };
        let mut all = Vec::new();
        for e in named.map_or_else(near, |q| q.0.clone()) {
            match cx.gauge_of(e) {
                Some(gauge) => all.push((e, gauge)),
                None => return Err(format!("QUEUES: '{}' does not store packets", cx.name_of(e)).into()),
            }
        }
        if all.is_empty() {
            let side = if pulled { "upstream" } else { "downstream" };
            let text = format!(
                "{}: no queue {side} and none named by QUEUES, so nothing is dropped",
                cx.declaration()
            );
            cx.message(&text);
        }
        Ok(Lengths(all))
    }

    /// The number of packets in all queues together.
    #[inline]
    pub(super) fn total(&self) -> usize {
        // While several workers change a gauge, it may be too low for a moment, and even wrap below 0.
        let sum = self.0.iter().fold(0_usize, |n, (_, gauge)| n.wrapping_add(gauge.get()));
        usize::try_from(sum.cast_signed()).unwrap_or(0)
    }

    /// The number of packets in all queues together, and how it grows when packets are pushed to them.
    #[inline]
    pub(super) fn growing(&self) -> Growing {
        let total = self.total();
        let most = match &*self.0 {
            // A gauge that several workers change may be above the capacity.
            [(_, gauge)] => gauge.capacity().max(total),
            _ => total,
        };
        Growing { total, most }
    }

    /// Returns the names of the queues, separated by `end`.
    pub(super) fn names(&self, end: &str, cx: &mut Cx<'_>) -> String {
        let name = |e: u32| cx.elements().get(e as usize).map_or("", |i| i.name.as_str());
        self.0.iter().map(|(e, _)| name(*e)).collect::<Vec<_>>().join(end)
    }
    /// Returns the argument QUEUES of a configuration string, with the comma before it. Returns an empty string if no
    /// queue has a name, because QUEUES needs at least one name.
    pub(super) fn argument(&self, cx: &mut Cx<'_>) -> String {
        let names = self.names(" ", cx);
        if names.trim().is_empty() { String::new() } else { format!(", QUEUES {names}") }
    }
}

/// The number of packets in queues, and the number that they can have: that of the only queue, or the same number.
pub(super) struct Growing {
    total: usize,
    most: usize,
}

impl Growing {
    /// The number of packets after `more` have been pushed. Unless `more` is 0, there must be one queue.
    #[inline]
    pub(super) fn after(&self, more: usize) -> usize {
        // A full queue drops these packets, or older ones.
        self.total.saturating_add(more).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lengths_add_up_and_never_fall_below_nothing() {
        let (a, b) = (Gauge::default(), Gauge::default());
        let both = Lengths(vec![(1, a.clone()), (2, b.clone())]);
        for (n, m, want) in [(0, 0, 0), (3, 4, 7), (usize::MAX, 4, 3), (usize::MAX, 0, 0)] {
            a.set(n);
            b.set(m);
            assert_eq!(both.total(), want);
        }
    }

    #[test]
    fn a_queue_does_not_grow_above_its_capacity() {
        let gauge = Gauge::default();
        gauge.set_capacity(5);
        let one = Lengths(vec![(1, gauge.clone())]);
        for (packets, more, want) in
            [(0, 0, 0), (3, 0, 3), (3, 2, 5), (3, 3, 5), (5, 1, 5), (7, 1, 7), (0, usize::MAX, 5)]
        {
            gauge.set(packets);
            assert_eq!(one.growing().after(more), want, "{packets} and {more}");
        }
        assert_eq!(Lengths::default().growing().after(3), 0);
    }

    #[test]
    fn names_of_queues() {
        let mut names = Names::new();
        names.define_element("q", 3, "Queue");
        names.define_element("r", 1, "Queue");
        let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
        let parse = |text| Queues::parse(text, &cx).map(|q| q.0);
        assert_eq!(parse("q").unwrap(), [3]);
        assert_eq!(parse(" r  q r ").unwrap(), [1, 3]);
        assert!(
            parse("").is_err() && parse("q s").unwrap_err().to_string().contains("does not name an element")
        );
    }
}
