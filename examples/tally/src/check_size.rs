// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckSize: passes packets whose length is within limits.

use castanet_element::prelude::*;

/// Passes packets of MIN to MAX bytes.
///
/// Packets that are shorter or longer leave unchanged on output 1; without that output they are dropped.
///
/// # Ports
/// Input 0: packets. Output 0: packets within the limits. Output 1, optional: the others.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, LENGTH 60, STOP true) -> c :: CheckSize(64, 1518) -> Discard;
/// c [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckSize", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(build, handlers, drops(TooShort, TooLong))]
pub struct CheckSize {
    args: Args,
    /// Packets outside the limits.
    #[count(unit = "packets")]
    rejected: Count,
}

/// Arguments of CheckSize.
#[derive(Args)]
pub struct Args {
    /// Minimum length in bytes.
    #[arg(handler = "rw")]
    min: u32,
    /// Maximum length in bytes.
    #[arg(default = 65_535, handler = "rw")]
    max: u32,
}

impl Build for CheckSize {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.min > args.max {
            return Err(format!("MIN: {} is more than MAX, {}", args.min, args.max).into());
        }
        Ok(CheckSize { args, rejected: Count::default() })
    }
}

#[handlers]
impl CheckSize {
    /// Sets the count to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.rejected.reset();
    }
}

impl Action for CheckSize {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let reason = match p.len() {
            n if n < self.args.min as usize => Reason::TooShort,
            n if n > self.args.max as usize => Reason::TooLong,
            _ => return Verdict::Next,
        };
        self.rejected.add(1);
        cx.out_or(1, reason)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn lengths_at_the_limits() {
        let mut kit = Kit::<CheckSize>::new("3, 5").unwrap();
        for (length, verdict) in [
            (0, Verdict::Drop(Reason::TooShort)),
            (2, Verdict::Drop(Reason::TooShort)),
            (3, Verdict::Next),
            (5, Verdict::Next),
            (6, Verdict::Drop(Reason::TooLong)),
        ] {
            assert_eq!(kit.act1(packet(&vec![0; length])).0, verdict, "{length}");
        }
        assert_eq!(kit.read("rejected").unwrap(), "3");
        kit.write("reset_counts", "").unwrap();
        assert_eq!(kit.read("rejected").unwrap(), "0");
    }

    #[test]
    fn every_packet_is_accounted_for() {
        for outputs in [1, 2] {
            let mut kit = Kit::<CheckSize>::with_ports("4, 7", 1, outputs).unwrap();
            let out = kit.act((0..32).map(|n| packet(&vec![0; n])));
            let ports: Vec<_> = (0..2).map(|port| out.iter().filter(|o| o.0 == port).count()).collect();
            assert_eq!(ports, [4, if outputs == 2 { 28 } else { 0 }]);
            assert_eq!(kit.dropped(Reason::TooShort), if outputs == 1 { 4 } else { 0 });
            assert_eq!(kit.dropped(Reason::TooLong), if outputs == 1 { 24 } else { 0 });
        }
    }

    #[test]
    fn arguments_change_through_handlers() {
        let mut kit = Kit::<CheckSize>::new("10").unwrap();
        assert_eq!(kit.read("max").unwrap(), "65535");
        kit.write("min", "0").unwrap();
        assert_eq!(kit.act1(packet(b"")).0, Verdict::Next);
        assert!(kit.write("min", "-1").is_err());
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("", "MIN: required argument missing"),
            ("9, 8", "MIN: 9 is more than MAX, 8"),
            ("1, 2, 3", "too many arguments"),
        ] {
            let errors = Kit::<CheckSize>::new(config).err().unwrap();
            assert!(errors[0].starts_with(error), "{config}: {errors:?}");
        }
    }
}
