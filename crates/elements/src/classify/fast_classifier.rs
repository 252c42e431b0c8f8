// SPDX-License-Identifier: MIT OR Apache-2.0
//! FastClassifier: classifies packets by a decision tree that was made before.

use super::patterns::Classify;
pub use castanet_classify::definitions::PREFIX;
use castanet_classify::definitions::{Definitions, MEMBER};
use castanet_classify::{AssemblyError, Program};
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_lang::args as text;

/// Sends packets to outputs by a decision tree that `castanet fastclassifier` has made.
///
/// The arguments are the lines of the tree. The first is `data N` for a tree that counts bytes from the start of the
/// packet, or `ip N` for one that reads the fields of IP packets; N is the number of outputs. Each other line is a step,
/// `OFFSET/VALUE%MASK END YES NO`: if the packet has all bytes before the offset END, and the four bytes at OFFSET equal VALUE
/// under MASK, the packet takes YES, otherwise NO. YES and NO are `[N]` for output N, `[X]` for a drop, or the number of a
/// later step, from 0. In a tree for IP packets, offsets from 256 on count from the IP header, offsets from 512 on from
/// the transport header, and lower ones from two bytes before the Ethernet header. A tree without steps has a line `[N]`
/// or `[X]` instead.
///
/// The class `FastClassifier@@NAME` has no arguments. Its tree is in the member `fastclassifier` of the archive that holds
/// the configuration, below the line `class FastClassifier@@NAME`.
///
/// # Ports
/// Input 0: packets. Outputs: as the tree says.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<ffffffffffff 000000000001 0800 45>, LIMIT 5, STOP true)
///     -> c :: FastClassifier(data 2, 12/08000000%ffff0000 14 [0] [1]);
/// c [0] -> Discard; c [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "FastClassifier", ports = "1/-", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(drops(NoMatch, NoIpHeader), build, handlers, depends = packet, kernel)]
pub struct FastClassifier {
    args: Args,
    classify: Classify,
}

/// Arguments of FastClassifier.
#[derive(Args)]
pub struct Args {
    /// The lines of the decision tree.
    #[arg(rest)]
    line: Vec<Line>,
}

/// A line of a decision tree.
#[derive(Clone, Debug)]
pub struct Line(String);

impl ArgValue for Line {
    const TYPE: &'static str = "line of a decision tree";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Line, ValueError> {
        Ok(Line(text.to_string()))
    }
}

/// The classes that an archive defines. All elements of a router share them.
struct Archive(Result<Definitions, AssemblyError>);

/// Returns the program of the class that the element is declared with. None if the program is in the arguments.
fn defined(cx: &mut BuildCx<'_>) -> Result<Option<Program>, ConfigError> {
    let class = cx.written_class;
    if !class.starts_with(PREFIX) {
        return Ok(None);
    }
    let member = cx.archive.iter().find(|m| m.0 == MEMBER);
    let archive = cx.share_as(u32::MAX, || {
        Archive(member.map_or_else(|| Ok(Definitions::default()), |m| Definitions::parse(&m.1)))
    });
    let definitions = match &archive.0 {
        Ok(definitions) => definitions,
        Err(e) => return Err(format!("member '{MEMBER}' of the archive: {e}").into()),
    };
    match definitions.classes.get(class) {
        Some(program) => Ok(Some(program.clone())),
        None => {
            let message = format!("no archive defines the class '{class}'");
            let help = "run the archive that click-fastclassifier has written, or its input";
            Err(ArgError::new(message, 0..usize::MAX).help(help).into())
        }
    }
}

/// Reads the program in the arguments.
fn written(args: &Args, cx: &BuildCx<'_>) -> Result<Program, ConfigError> {
    Program::assemble(args.line.iter().map(|l| l.0.as_str())).map_err(|e| {
        let range = text::split(cx.config).get(e.line).map_or(0..usize::MAX, |line| {
            let at = |n: usize| line.start.saturating_add(n).min(line.end);
            if e.range.is_empty() { line.clone() } else { at(e.range.start)..at(e.range.end) }
        });
        let error = ArgError::new(format!("line {}: {}", e.line.saturating_add(1), e.message), range);
        match e.expected {
            Some(what) => error.help(format!("expected {what}")).into(),
            None => error.into(),
        }
    })
}

impl Build for FastClassifier {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let program = match defined(cx)? {
            Some(_) if !args.line.is_empty() => {
                return Err(format!("class '{}' takes no arguments", cx.written_class).into());
            }
            Some(program) => program,
            None => written(&args, cx)?,
        };
        if program.outputs() != cx.outputs {
            let message =
                format!("the decision tree has {} outputs, but {} are in use", program.outputs(), cx.outputs);
            return Err(message.into());
        }
        Ok(FastClassifier { args, classify: Classify::new(program, cx) })
    }
}

#[handlers]
impl FastClassifier {
    /// The decision tree, as the handler of Classifier shows it.
    #[read(merge = first)]
    fn program(&self) -> String {
        self.classify.program().program_text()
    }
}

impl Element for FastClassifier {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.classify.push(batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        self.classify.push_one(p, cx);
    }
}

impl InKernel for FastClassifier {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.classify.lower(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const TREE: &str = "data 2, 12/08000000%ffff0000 14 [0] 1, 12/08060000%ffff0000 14 [1] [X]";

    #[test]
    fn packets_take_the_outputs_of_the_tree() {
        for size in [1, 2, 3, 32] {
            let mut kit = Kit::<FastClassifier>::with_ports(TREE, 1, 2).unwrap();
            let kinds = [0x800u16, 0x806, 0x86dd, 0x800, 0x806, 0x806];
            let frame =
                |kind: u16, len: usize| packet(&[&[0; 12], &kind.to_be_bytes()[..], &[1; 9]].concat()[..len]);
            let frames: Vec<(u16, usize)> = kinds.iter().flat_map(|k| (0..23).map(|len| (*k, len))).collect();
            let mut got = [0; 2];
            for some in frames.chunks(size) {
                kit.push(0, some.iter().map(|f| frame(f.0, f.1)))
                    .iter()
                    .for_each(|(port, _)| got[*port] += 1);
            }
            assert_eq!(got, [2 * 9, 3 * 9], "batches of {size}");
            assert_eq!(kit.dropped(Reason::NoMatch), 9 + 6 * 14);
        }
    }

    #[test]
    fn trees_for_ip_packets_need_a_header() {
        let mut kit =
            Kit::<FastClassifier>::with_ports("ip 1, 264/00060000%00ff0000 266 [0] [X]", 1, 1).unwrap();
        let mut p = packet(&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        p.set_network_header(0, 20);
        assert_eq!(kit.push(0, [packet(&[0x45; 40]), p]).len(), 1);
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }

    #[test]
    fn handler_and_errors() {
        let mut kit = Kit::<FastClassifier>::with_ports(TREE, 1, 2).unwrap();
        let program = Program::from_classifier(&["12/0800", "12/0806"]).unwrap().0;
        assert_eq!(kit.read("program").unwrap(), program.program_text());
        for (config, outputs, message) in [
            (TREE, 1, "the decision tree has 2 outputs, but 1 are in use"),
            ("", 1, "line 1: too few words"),
            ("data 2, 12/08000000%ffff0000 14 [0] 7", 2, "line 2: there is no step 7"),
        ] {
            assert_eq!(
                Kit::<FastClassifier>::with_ports(config, 1, outputs).err().unwrap(),
                [message],
                "{config}"
            );
        }
    }
}
