// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomBitErrors: adds random bit errors, as on a noisy line.

use crate::trace::Probability;
use castanet_element::prelude::*;

/// Changes each bit of packets with a given probability.
///
/// KIND is the kind of change: `flip` inverts the bit, `set` makes it 1, `clear` makes it 0. The element's random
/// numbers depend only on the seed of the run, the element's name and the replica. Annotations are not changed.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with bit errors.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetCRC32 -> RandomBitErrors(0.001) -> CheckCRC32 -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RandomBitErrors", offload = none, ports = "1/1", processing = "a/a", packets = "any/changed")]
#[class(reconfigure = keeps, workers = replicate, build, lifecycle, depends = order)]
pub struct RandomBitErrors {
    args: Args,
    random: Random,
    /// The number of bits from the start of the next packet to the next error.
    next: u64,
}

/// Arguments of RandomBitErrors.
#[derive(Args)]
pub struct Args {
    /// The probability that a bit gets an error, 0 to 1.
    #[arg(handler = "rw", handler_name = "p_bit_error")]
    p: Probability,
    /// What an error does to a bit: `flip`, `set` or `clear`.
    #[arg(default = BitError::Flip, show = "flip", handler = "rw", handler_name = "error_kind")]
    kind: BitError,
    /// Whether errors are added; false to pass packets unchanged.
    #[arg(default = true, handler = "rw")]
    active: bool,
}

/// What an error does to a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BitError {
    Flip,
    Set,
    Clear,
}

impl ArgValue for BitError {
    const TYPE: &'static str = "kind of error";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<BitError, ValueError> {
        match castanet_lang::args::unquote(text).as_str() {
            "flip" => Ok(BitError::Flip),
            "set" => Ok(BitError::Set),
            "clear" => Ok(BitError::Clear),
            other => Err(ValueError::not_one_of(other, &["flip", "set", "clear"])),
        }
    }
}

impl Show for BitError {
    fn show(&self) -> String {
        match self {
            BitError::Flip => "flip",
            BitError::Set => "set",
            BitError::Clear => "clear",
        }
        .into()
    }
}

/// Draws the number of bits before the next error. It is geometrically distributed.
fn gap(p: f64, random: &mut Random) -> u64 {
    // Invert the distribution function at a random number from (0, 1]. The cast saturates if the result is too large.
    if p <= 0.0 { u64::MAX } else { ((1.0 - random.unit()).ln() / (-p).ln_1p()) as u64 }
}

impl Build for RandomBitErrors {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let mut random = cx.random_of_replica();
        let next = gap(args.p.0, &mut random);
        Ok(RandomBitErrors { args, random, next })
    }
}

impl Action for RandomBitErrors {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let bits = 8 * p.len() as u64;
        if self.args.active {
            if self.next < bits {
                self.damage(p.data_mut());
            }
            self.next = self.next.saturating_sub(bits);
        }
        Verdict::Next
    }
}

impl RandomBitErrors {
    #[cold]
    fn damage(&mut self, data: &mut [u8]) {
        let place = |bit: u64| Some((usize::try_from(bit / 8).ok()?, 0x80 >> (bit % 8)));
        while let Some((byte, mask)) = place(self.next).and_then(|(i, mask)| Some((data.get_mut(i)?, mask))) {
            match self.args.kind {
                BitError::Flip => *byte ^= mask,
                BitError::Set => *byte |= mask,
                BitError::Clear => *byte &= !mask,
            }
            self.next = self.next.saturating_add(1).saturating_add(gap(self.args.p.0, &mut self.random));
        }
    }
}

impl Lifecycle for RandomBitErrors {
    fn changed(&mut self, handler: &str, _: &mut Cx<'_>) -> Result<(), ElementError> {
        if handler == Args::P_BIT_ERROR {
            self.next = gap(self.args.p.0, &mut self.random);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Sends packets of these lengths, filled with `byte`, in batches of `n`. Returns the bytes of all packets after
    /// the errors, concatenated.
    fn damaged(config: &str, byte: u8, lengths: &[usize], n: usize) -> Vec<u8> {
        let mut kit = Kit::<RandomBitErrors>::new(config).unwrap();
        let mut out = Vec::new();
        for some in lengths.chunks(n) {
            out.extend(kit.act(some.iter().map(|&len| packet(&vec![byte; len]))));
        }
        assert_eq!((out.len(), kit.all_dropped()), (lengths.len(), 0));
        out.iter().flat_map(|(_, p)| p.data().to_vec()).collect()
    }
    fn ones(data: &[u8]) -> f64 {
        data.iter().map(|b| f64::from(b.count_ones())).sum()
    }

    #[test]
    fn as_many_errors_as_the_probability_says() {
        let lengths: Vec<usize> = (0..400).map(|i| i % 97).collect();
        let bits = 8.0 * lengths.iter().sum::<usize>() as f64;
        for p in [0.0, 0.00001, 0.001, 0.03, 0.5, 0.97, 1.0] {
            let one = damaged(&p.to_string(), 0, &lengths, 1);
            // The tolerance: six standard deviations of a binomial distribution.
            let off = 6.0 * (bits * p * (1.0 - p)).sqrt();
            assert!((ones(&one) - bits * p).abs() <= off, "{p}: {} of {bits}", ones(&one));
            for n in [2, 3, 32, 256] {
                assert_eq!(damaged(&p.to_string(), 0, &lengths, n), one, "{p}: batch {n}");
            }
            // Packet boundaries make no difference: the errors hit the same bits of the concatenated packets.
            assert_eq!(damaged(&p.to_string(), 0, &[one.len() / 16; 16], 1), one[..one.len() / 16 * 16]);
        }
    }

    #[test]
    fn kinds() {
        let lengths = [200; 20];
        let (none, some) = (0.0, 1.0..31_999.0);
        for (kind, on_zeros, on_ones) in [("flip", true, true), ("set", true, false), ("clear", false, true)]
        {
            let config = format!("0.1, {kind}");
            let zeros = ones(&damaged(&config, 0, &lengths, 1));
            let missing = 32_000.0 - ones(&damaged(&config, 0xff, &lengths, 1));
            assert!(if on_zeros { some.contains(&zeros) } else { zeros == none }, "{kind} {zeros}");
            assert!(if on_ones { some.contains(&missing) } else { missing == none }, "{kind} {missing}");
        }
    }

    #[test]
    fn handlers_and_copies() {
        let mut kit = Kit::<RandomBitErrors>::new("0.25, set, false").unwrap();
        let mut values = |h: &[&str]| h.iter().map(|h| kit.read(h).unwrap()).collect::<Vec<_>>();
        assert_eq!(values(&["p_bit_error", "error_kind", "active"]), ["0.25", "set", "false"]);
        assert_eq!(kit.act([packet(&[0; 500])])[0].1.data(), [0; 500], "not active");
        kit.write("active", "true").unwrap();
        kit.write("p_bit_error", "1").unwrap();
        let mut p = packet(&[0; 500]);
        let copy = p.share().unwrap();
        assert_eq!(kit.act([p])[0].1.data(), [0xff; 500]);
        assert_eq!(copy.data(), [0; 500], "a copy stays as it was");
        kit.write("error_kind", "clear").unwrap();
        assert_eq!(kit.act([packet(&[0xff; 500])])[0].1.data(), [0; 500]);
        kit.write("p_bit_error", "0").unwrap();
        assert_eq!(kit.act([packet(&[7; 500])])[0].1.data(), [7; 500]);
        assert!(kit.write("p_bit_error", "2").is_err() && kit.write("error_kind", "x").is_err());
        assert!(
            Kit::<RandomBitErrors>::new("").is_err() && Kit::<RandomBitErrors>::new("0.1, turn").is_err()
        );
    }
}
