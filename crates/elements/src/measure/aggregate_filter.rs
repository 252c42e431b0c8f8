// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateFilter: sends packets to outputs by aggregate.

use castanet_element::prelude::*;
use castanet_lang::args;
use castanet_spec::anno;

/// Sends packets to outputs by their aggregate annotation.
///
/// Each rule is an action and the aggregates that it applies to, given as numbers or ranges `FIRST-LAST`. The
/// action `allow` sends packets to output 0, `drop` and `deny` drop them, and a number sends them to that
/// output. Without aggregates, or with `all` or `-`, a rule applies to every aggregate. The first rule that
/// matches decides; packets that match no rule are dropped.
///
/// # Ports
/// Input 0: packets. Outputs 0 to 253: packets.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data aggregate
/// 1
/// 5
/// 9
/// ", STOP true) -> f :: AggregateFilter(allow 1 3-5, 1 all) -> Print(few) -> Discard;
/// f [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregateFilter", ports = "1/1-254", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(build, drops(NoMatch))]
pub struct AggregateFilter {
    args: Args,
    /// The start of each range, and the destination of its packets. Sorted; each range ends where the next
    /// one begins.
    ranges: Vec<(u32, Goes)>,
}

/// Arguments of AggregateFilter.
#[derive(Args)]
pub struct Args {
    /// An action and the aggregates that it applies to.
    #[arg(rest)]
    rule: Vec<Rule>,
}

/// The number of the output for packets; `None` if they are dropped.
type Goes = Option<u8>;

/// An action and the aggregates that it applies to.
#[derive(Clone, Debug)]
pub struct Rule {
    goes: Goes,
    ranges: Vec<(u32, u32)>,
}

impl ArgValue for Rule {
    const TYPE: &'static str = "action and aggregates";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Rule, ValueError> {
        let mut words = args::words(text).into_iter().map(|r| text.get(r).unwrap_or(""));
        let goes = match words.next().unwrap_or("") {
            "allow" => Some(0),
            "drop" | "deny" => None,
            word => Some(
                u8::parse(word, cx).map_err(|_| format!("'{word}' is not allow, drop, deny or an output"))?,
            ),
        };
        let range = |word: &str| -> Result<(u32, u32), ValueError> {
            if word == "all" || word == "-" {
                return Ok((0, u32::MAX));
            }
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number =
                |t: &str| u32::parse(t, cx).map_err(|_| format!("'{word}' is not an aggregate or a range"));
            match (number(first)?, number(last)?) {
                (first, last) if first <= last => Ok((first, last)),
                _ => Err(format!("the range '{word}' is empty").into()),
            }
        };
        let ranges: Vec<_> = words.map(range).collect::<Result<_, _>>()?;
        Ok(Rule { goes, ranges: if ranges.is_empty() { vec![(0, u32::MAX)] } else { ranges } })
    }
}

impl Build for AggregateFilter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let outputs = args.rule.iter().filter_map(|r| r.goes);
        if let Some(bad) = outputs.max().filter(|o| usize::from(*o) >= cx.outputs) {
            return Err(format!("output {bad} does not exist").into());
        }
        let rules: Vec<_> =
            args.rule.iter().flat_map(|r| r.ranges.iter().map(|range| (*range, r.goes))).collect();
        // The boundaries of all ranges. From each boundary up to the next greater one, all numbers match the same
        // rules.
        let ends = rules.iter().flat_map(|((first, last), _)| [Some(*first), last.checked_add(1)]);
        let mut starts: Vec<u32> = ends.flatten().chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let goes =
            |n: u32| rules.iter().find(|((first, last), _)| (*first..=*last).contains(&n)).and_then(|r| r.1);
        let ranges = starts.into_iter().map(|n| (n, goes(n))).collect();
        Ok(AggregateFilter { args, ranges })
    }
}

impl AggregateFilter {
    #[inline]
    fn goes(&self, aggregate: u32) -> Goes {
        let after = self.ranges.partition_point(|r| r.0 <= aggregate);
        self.ranges.get(after.wrapping_sub(1)).and_then(|r| r.1)
    }
}

impl Element for AggregateFilter {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.emit_each(batch, Reason::NoPort, |p| {
            self.goes(p.anno_u32(anno::AGGREGATE)).map(usize::from).ok_or(Reason::NoMatch)
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn the_first_rule_that_fits_counts() {
        let mut kit =
            Kit::<AggregateFilter>::with_ports("drop 4, allow 1 3-5 4294967295, 2 7-9 4, 1 8-100", 1, 3)
                .unwrap();
        let want = |n: u32| match n {
            4 => None,
            1 | 3 | 5 | u32::MAX => Some(0),
            7..=9 => Some(2),
            10..=100 => Some(1),
            _ => None,
        };
        for n in (0..120).chain([u32::MAX - 1, u32::MAX]) {
            let mut p = packet(b"");
            p.set_anno_u32(anno::AGGREGATE, n);
            let out = kit.push(0, [p]);
            assert_eq!(out.first().map(|o| o.0), want(n), "{n}");
        }
        let mut kit = Kit::<AggregateFilter>::new("allow all").unwrap();
        assert_eq!(kit.push(0, [packet(b"")]).len(), 1);
        let mut kit = Kit::<AggregateFilter>::new("").unwrap();
        assert_eq!((kit.push(0, [packet(b"")]).len(), kit.dropped(Reason::NoMatch)), (0, 1));
        for bad in ["foo 1", "1 5", "allow x", "allow 5-3", "allow 1-2-3", "300"] {
            assert!(Kit::<AggregateFilter>::new(bad).is_err(), "{bad}");
        }
    }
}
