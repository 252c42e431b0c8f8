// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetTimestampDelta: makes timestamps relative to another time.

use castanet_element::prelude::*;
use castanet_spec::anno;

/// Replaces timestamps by their difference to another time.
///
/// TYPE names the other time. With RANGE, the difference is the time since the first packet's timestamp. With FIRST, it
/// is the time since the packet's own FIRST_TIMESTAMP annotation. With NOW, it is the time from the timestamp until
/// now.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data timestamp
/// 7
/// 9.5
/// ", STOP true) -> SetTimestampDelta -> Print(since, TIMESTAMP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetTimestampDelta", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, lifecycle, handlers)]
#[class(takes_state = "the time of the first packet")]
pub struct SetTimestampDelta {
    args: Args,
    first: Option<i64>,
}

/// Arguments of SetTimestampDelta.
#[derive(Args)]
pub struct Args {
    /// The other time: RANGE, NOW or FIRST.
    #[arg(keyword, name = "TYPE", default = From::Range, show = "RANGE")]
    from: From,
}

/// The time that timestamps are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The timestamp of the first packet.
    Range,
    /// The current time.
    Now,
    /// The packet's FIRST_TIMESTAMP annotation.
    First,
}

impl ArgValue for From {
    const TYPE: &'static str = "word";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<From, ValueError> {
        match text.to_ascii_uppercase().as_str() {
            "RANGE" => Ok(From::Range),
            "NOW" => Ok(From::Now),
            "FIRST" => Ok(From::First),
            _ => Err(ValueError::not_one_of(text, &["RANGE", "NOW", "FIRST"])),
        }
    }
}

impl Action for SetTimestampDelta {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let time = p.timestamp();
        let delta = match self.args.from {
            From::Range => time.saturating_sub(*self.first.get_or_insert(time)),
            From::Now => cx.now().saturating_sub(time),
            From::First => time.saturating_sub(i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP))),
        };
        p.set_timestamp(delta);
        Verdict::Next
    }
}

#[handlers]
impl SetTimestampDelta {
    /// The timestamp of the first packet.
    #[read]
    fn first(&self) -> Timestamp {
        Timestamp(self.first.unwrap_or(0))
    }
    /// Makes the next packet count as the first one.
    #[write(button)]
    fn reset(&mut self) {
        self.first = None;
    }
}

impl Lifecycle for SetTimestampDelta {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.first = old.first;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn deltas() {
        let delta = |kit: &mut Kit<SetTimestampDelta>, time: i64| {
            let mut p = packet(b"");
            p.set_timestamp(time);
            p.set_anno(anno::FIRST_TIMESTAMP, 4_i64.to_ne_bytes());
            kit.act1(p).1.timestamp()
        };
        let mut kit = Kit::<SetTimestampDelta>::new("").unwrap();
        assert_eq!((delta(&mut kit, 10), delta(&mut kit, 17), delta(&mut kit, 3)), (0, 7, -7));
        assert_eq!(kit.read("first").unwrap(), "0.000000010");
        kit.write("reset", "").unwrap();
        assert_eq!(delta(&mut kit, 99), 0);
        assert_eq!(delta(&mut Kit::new("TYPE first").unwrap(), 10), 6);
        let now = delta(&mut Kit::new("TYPE NOW").unwrap(), 999_000_000_000);
        assert!((1_000_000_000..1_001_000_000).contains(&now));
        assert!(Kit::<SetTimestampDelta>::new("TYPE x").is_err());
    }
}
