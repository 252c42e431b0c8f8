// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifier: classifies packets by their bytes.

use super::patterns::{Classify, PatternText, of_config, one_per_output};
use castanet_classify::Program;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Sends packets to the output of the first pattern that their bytes match.
///
/// A pattern is `-`, which matches all packets, or a list of clauses `OFFSET/VALUE` or `OFFSET/VALUE%MASK`
/// that must all hold. A clause compares the bytes at OFFSET, counted from the start of the packet, with
/// VALUE, which is hexadecimal with `?` for any digit. MASK selects the bits to compare. A clause on bytes
/// beyond the end of the packet does not hold. `!` before a clause inverts it. Packets that match no pattern
/// are dropped. All patterns are compiled to one decision tree, so their number hardly affects the speed.
///
/// # Ports
/// Input 0: packets. Outputs: one for each pattern.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<ffffffffffff 000000000001 0800 45>, LIMIT 5, STOP true)
///     -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
/// c [0] -> Discard; c [1] -> Discard; c [2] -> Discard; c [3] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Classifier", ports = "1/-", processing = "h/h", packets = "any/classified", workers = replicate)]
#[class(reconfigure = keeps, drops(NoMatch), build, handlers, depends = packet)]
#[class(kernel)]
pub struct Classifier {
    args: Args,
    classify: Classify,
}

/// Arguments of Classifier.
#[derive(Args)]
pub struct Args {
    /// Patterns, one for each output: '-' or clauses '[!]OFFSET/VALUE[%MASK]'.
    #[arg(rest)]
    pattern: Vec<PatternText>,
}

impl Args {
    pub(super) fn texts(&self) -> Vec<&str> {
        self.pattern.iter().map(|p| p.0.as_str()).collect()
    }
}

impl Build for Classifier {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        one_per_output(args.pattern.len(), cx.outputs)?;
        let program = of_config(Program::from_classifier(&args.texts()), cx)?;
        Ok(Classifier { args, classify: Classify::new(program, cx) })
    }
}

#[handlers]
impl Classifier {
    /// The decision tree.
    #[read(merge = first)]
    fn program(&self) -> String {
        self.classify.program().program_text()
    }
}

impl Element for Classifier {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.classify.push(batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        self.classify.push_one(p, cx);
    }
}

impl InKernel for Classifier {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.classify.lower(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const ROUTER: &str = "12/0806 20/0001, 12/0806 20/0002, 12/0800, -";

    fn frame(kind: u16, op: u16, len: usize) -> Vec<u8> {
        let mut data = vec![0; 12];
        data.extend(kind.to_be_bytes());
        data.extend([0, 1, 8, 0, 6, 4]);
        data.extend(op.to_be_bytes());
        data.resize(60, 0);
        data.truncate(len);
        data
    }

    /// Returns the output according to the patterns of `ROUTER`, without a decision tree.
    fn expected(data: &[u8]) -> usize {
        let at = |offset: usize, value: &[u8]| data.get(offset..offset + 2) == Some(value);
        match () {
            _ if at(12, &[8, 6]) && at(20, &[0, 1]) => 0,
            _ if at(12, &[8, 6]) && at(20, &[0, 2]) => 1,
            _ if at(12, &[8, 0]) => 2,
            _ => 3,
        }
    }

    #[test]
    fn frames_of_every_length_in_batches_of_any_size() {
        let mut frames = Vec::new();
        for len in 0..=60 {
            for (kind, op) in [(0x806, 1), (0x806, 2), (0x806, 3), (0x800, 1), (0x86dd, 2)] {
                frames.push(frame(kind, op, len));
            }
        }
        for size in [1, 2, 3, 32, 256] {
            let mut kit = Kit::<Classifier>::with_ports(ROUTER, 1, 4).unwrap();
            let mut got = vec![Vec::new(); 4];
            for some in frames.chunks(size) {
                for (port, p) in kit.push(0, some.iter().map(|f| packet(f))) {
                    got[port].push(p.data().to_vec());
                }
            }
            for (port, got) in got.iter().enumerate() {
                let want: Vec<_> = frames.iter().filter(|f| expected(f) == port).cloned().collect();
                assert_eq!(*got, want, "batches of {size}, output {port}");
            }
        }
    }

    #[test]
    fn what_matches_nothing_is_dropped() {
        let mut kit = Kit::<Classifier>::with_ports("4/00", 1, 1).unwrap();
        assert!(kit.push(0, [packet(&[0; 2]), packet(&[0; 4])]).is_empty());
        assert_eq!(kit.push(0, [packet(&[0; 2]), packet(&[0; 5])]).len(), 1);
        assert_eq!(kit.dropped(Reason::NoMatch), 3);
        let mut kit = Kit::<Classifier>::with_ports("!4/11", 1, 1).unwrap();
        assert_eq!(kit.push(0, [packet(&[0; 2])]).len(), 1);
    }

    #[test]
    fn handler_errors_and_warnings() {
        let mut kit = Kit::<Classifier>::with_ports("12/0800, -", 1, 2).unwrap();
        assert!(kit.read("program").unwrap().contains("12/08000000%ffff0000"));
        let kit = Kit::<Classifier>::with_ports("-, 12/0800", 1, 2).unwrap();
        assert_eq!(kit.warnings(), ["output 1 matches no packets"]);
        let error = |config: &str, outputs| Kit::<Classifier>::with_ports(config, 1, outputs).err().unwrap();
        assert_eq!(error("-", 2), ["need 2 arguments, one per output port"]);
        assert_eq!(error("", 1), ["need 1 argument, one per output port"]);
        assert_eq!(error("12/080, zz", 2).len(), 2);
    }
}
