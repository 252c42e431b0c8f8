// SPDX-License-Identifier: MIT OR Apache-2.0
//! HashSwitch: chooses an output by a hash of packet bytes.

use castanet_element::kernel::{Arithmetic, Code, Lowered, Refused, Size, Test};
use castanet_element::prelude::*;

/// Sends packets to outputs by a hash of some of their bytes, so that packets with equal bytes take the same output.
///
/// The hash is the sum of LENGTH bytes from OFFSET on. With 2, 4 or 8 outputs, the last bits of `sum XOR (sum / 16)`
/// choose the output. With other numbers of outputs, the output is the sum modulo the number of outputs. A packet that
/// is too short goes to output 0.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets, each on one output.
///
/// # Example
/// ```click
/// RatedSource(DATA "\<0a000001 0a000002>", LIMIT 5, STOP true) -> h :: HashSwitch(0, 8) -> Discard;
/// h [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "HashSwitch", aliases("HashDemux"), ports = "1/1-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, build, depends = packet)]
#[class(kernel)]
pub struct HashSwitch {
    args: Args,
    /// The offset after the last byte that the hash includes.
    end: usize,
    outputs: u32,
}

/// Arguments of HashSwitch.
#[derive(Args)]
pub struct Args {
    /// The offset of the first byte that the hash includes.
    offset: u32,
    /// The number of bytes that the hash includes, at least 1.
    #[arg(min = 1)]
    length: u32,
}

impl Build for HashSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let end = (args.offset as usize).saturating_add(args.length as usize);
        Ok(HashSwitch { args, end, outputs: u32::try_from(cx.outputs).unwrap_or(u32::MAX).max(1) })
    }
}

/// The sum of eight bytes. Adds pairs of them first, then the four sums.
#[inline(always)]
fn sum_of_8(bytes: u64) -> u32 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes & EVEN) + (bytes >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

/// The sum of bytes.
#[inline(always)]
fn sum(bytes: &[u8]) -> u32 {
    let (eights, mut rest) = bytes.as_chunks::<8>();
    let mut sum = eights.iter().fold(0u32, |sum, b| sum.wrapping_add(sum_of_8(u64::from_ne_bytes(*b))));
    if let Some((four, after)) = rest.split_first_chunk::<4>() {
        sum = sum.wrapping_add(sum_of_8(u32::from_ne_bytes(*four).into()));
        rest = after;
    }
    rest.iter().fold(sum, |sum, &b| sum.wrapping_add(b.into()))
}

/// The largest LENGTH in the kernel.
const LONGEST: u32 = 64;

impl HashSwitch {
    #[inline(always)]
    fn output(&self, p: &Packet) -> usize {
        let Some(bytes) = p.data().get(self.args.offset as usize..self.end) else { return 0 };
        let sum = sum(bytes);
        let output = match self.outputs {
            n @ (2 | 4 | 8) => (sum ^ sum >> 4) & (n - 1),
            n => sum % n,
        };
        output as usize
    }
}

impl Element for HashSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.forward_by(batch, Reason::NoPort, |p| self.output(p));
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        cx.emit(self.output(&p), p);
    }
}

impl InKernel for HashSwitch {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.args.length > LONGEST {
            return Err("LENGTH is too large".into());
        }
        let at = i32::try_from(self.args.offset).map_err(|_| Refused("OFFSET is too large".into()))?;
        let short = code.label();
        code.need_at(at, self.args.length, short);
        let sum = code.load(at, Size::Byte);
        for skip in 1..self.args.length {
            let byte = code.load(at + skip as i32, Size::Byte);
            code.compute_into(sum, Arithmetic::Add, sum, byte);
        }
        match self.outputs {
            n @ (2 | 4 | 8) => {
                let high = code.compute(Arithmetic::ShiftRight, sum, 4u32);
                code.compute_into(sum, Arithmetic::Xor, sum, high);
                code.compute_into(sum, Arithmetic::And, sum, n - 1);
            }
            n => code.compute_into(sum, Arithmetic::Remainder, sum, n),
        }
        for output in 1..self.outputs {
            let other = code.label();
            code.branch(sum, Test::Differ, output, other);
            code.next(output as usize);
            code.bind(other);
        }
        code.next(0);
        code.bind(short);
        code.next(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Computes the output in the obvious way.
    fn model(data: &[u8], offset: usize, length: usize, outputs: usize) -> usize {
        if data.len() < offset + length {
            return 0;
        }
        let sum: usize = (offset..offset + length).map(|i| usize::from(data[i])).sum();
        match outputs {
            2 | 4 | 8 => (sum ^ (sum / 16)) % outputs,
            _ => sum % outputs,
        }
    }

    #[test]
    fn every_length_and_number_of_outputs() {
        let mut random = Random::new(2, "hash");
        for n in [1, 2, 3, 32] {
            for outputs in 1..18 {
                for (offset, length) in [(0, 1), (3, 4), (12, 8), (0, 60), (59, 1), (30, 40)] {
                    let mut kit =
                        Kit::<HashSwitch>::with_ports(&format!("{offset}, {length}"), 1, outputs).unwrap();
                    let all: Vec<Vec<u8>> =
                        (0..61).map(|l| (0..l).map(|_| random.next_u32() as u8).collect()).collect();
                    for some in all.chunks(n) {
                        let mut want: Vec<_> =
                            some.iter().map(|d| (model(d, offset, length, outputs), d.clone())).collect();
                        want.sort_by_key(|w| w.0);
                        let got = kit.push(0, some.iter().map(|d| packet(d)));
                        let got: Vec<_> = got.iter().map(|(o, p)| (*o, p.data().to_vec())).collect();
                        assert_eq!(got, want);
                    }
                    assert_eq!(kit.all_dropped(), 0);
                }
            }
        }
    }

    #[test]
    fn arguments_are_checked() {
        for config in ["", "0", "0, 0", "-1, 4", "0, -4", "x, 4"] {
            assert!(Kit::<HashSwitch>::with_ports(config, 1, 2).is_err(), "{config}");
        }
        let mut far = Kit::<HashSwitch>::with_ports("4294967295, 4294967295", 1, 2).unwrap();
        assert_eq!(far.push(0, [packet(&[1; 60])])[0].0, 0);
    }
}
