// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCPs that are compared in memory, and their runs under callgrind.

use super::bulk::{Bulk, Transfer};
use super::echo::{Exchange, PAIRS, PHASES, Pairs};
use super::host::{MOST, Options};
use super::ours::{Castanet, Plain};
use super::theirs::Smoltcp;
use crate::instructions::collected_of;
use std::path::Path;

/// The buffers of an echo, in bytes.
const ECHO_BUFFER: usize = 16_384;
/// The buffers of a bulk transfer, in bytes: those that TCPStack has by default.
const BULK_BUFFER: usize = 262_144;
/// The repetitions of an echo in a short run and in a long one. The difference is what counts.
const ECHOES: [usize; 2] = [2, 12];
/// The bytes of the two runs of a bulk transfer.
const BYTES: [usize; 2] = [1_000_000, 4_000_000];

/// A TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// Castanet's.
    Castanet,
    /// Castanet's, compiled without inlining.
    Plain,
    /// smoltcp, with timestamps and CUBIC as Castanet's.
    Smoltcp,
    /// smoltcp without either.
    Bare,
}

impl Contestant {
    /// All of them, in the order of the report.
    pub const ALL: [Contestant; 4] =
        [Contestant::Castanet, Contestant::Plain, Contestant::Smoltcp, Contestant::Bare];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Contestant::Castanet => "castanet",
            Contestant::Plain => "castanet, not inlined",
            Contestant::Smoltcp => "smoltcp",
            Contestant::Bare => "smoltcp, bare",
        }
    }
    /// The cycles a packet in Figure 6 of the paper.
    pub fn paper(self) -> Option<f64> {
        match self {
            Contestant::Castanet => Some(3067.0),
            Contestant::Plain => Some(6833.0),
            Contestant::Smoltcp | Contestant::Bare => None,
        }
    }
    fn options(self, buffer: usize, burst: usize) -> Options {
        Options { buffer, bare: self == Contestant::Bare, burst }
    }
    /// An echo of data of this size.
    ///
    /// # Errors
    /// The hosts do not exchange data as they should.
    pub fn echo(self, size: usize) -> Result<Box<dyn Exchange>, String> {
        let options = self.options(ECHO_BUFFER, 1);
        let exchange: Result<Box<dyn Exchange>, String> = match self {
            Contestant::Castanet => Pairs::<Castanet>::new(size, options).map(|p| Box::new(p) as _),
            Contestant::Plain => Pairs::<Plain>::new(size, options).map(|p| Box::new(p) as _),
            Contestant::Smoltcp | Contestant::Bare => {
                Pairs::<Smoltcp>::new(size, options).map(|p| Box::new(p) as _)
            }
        };
        exchange.map_err(|e| format!("{}: {e}", self.name()))
    }
    /// A bulk transfer, whose receiver reads after each burst of so many packets.
    ///
    /// # Errors
    /// The hosts do not exchange data as they should.
    pub fn bulk(self, burst: usize) -> Result<Box<dyn Transfer>, String> {
        let options = self.options(BULK_BUFFER, usize::MAX);
        let transfer: Result<Box<dyn Transfer>, String> = match self {
            Contestant::Castanet => Bulk::<Castanet>::new(options, burst).map(|b| Box::new(b) as _),
            Contestant::Plain => Bulk::<Plain>::new(options, burst).map(|b| Box::new(b) as _),
            Contestant::Smoltcp | Contestant::Bare => {
                Bulk::<Smoltcp>::new(options, burst).map(|b| Box::new(b) as _)
            }
        };
        transfer.map_err(|e| format!("{}: {e}", self.name()))
    }
}

/// The work that a run repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An echo of data of this size.
    Echo(usize),
    /// A bulk transfer with these bursts.
    Bulk(usize),
}

/// A run under callgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    contestant: Contestant,
    work: Work,
    /// Repetitions of the echo, or bytes.
    amount: usize,
}

impl Run {
    /// Formats the run as `CONTESTANT,WORK,SIZE,AMOUNT`; the contestant is a number.
    fn text(self) -> String {
        let contestant = Contestant::ALL.iter().position(|c| *c == self.contestant).unwrap_or_default();
        let (work, size) = match self.work {
            Work::Echo(size) => ("echo", size),
            Work::Bulk(burst) => ("bulk", burst),
        };
        format!("{contestant},{work},{size},{}", self.amount)
    }
    /// Parses a text that `text` returned.
    pub fn parse(text: &str) -> Option<Run> {
        let mut words = text.split(',');
        let number = |word: Option<&str>| word?.parse::<usize>().ok();
        let contestant = *Contestant::ALL.get(number(words.next())?)?;
        let (work, size) = (words.next()?, number(words.next())?);
        let work = match work {
            "echo" if (1..=MOST).contains(&size) => Work::Echo(size),
            "bulk" if size >= 1 => Work::Bulk(size),
            _ => return None,
        };
        let amount = number(words.next())?;
        words.next().is_none().then_some(Run { contestant, work, amount })
    }
    /// Executes the run.
    ///
    /// # Errors
    /// The hosts do not exchange data as they should.
    pub fn run(self) -> Result<(), String> {
        match self.work {
            Work::Echo(size) => self.contestant.echo(size)?.exchange(self.amount).map(drop),
            Work::Bulk(burst) => self.contestant.bulk(burst)?.transfer(self.amount).map(drop),
        }
    }
}

/// This program, which executes a [`Run`] when its text follows these arguments.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// The path.
    pub program: &'a Path,
    /// The arguments.
    pub arguments: &'a [&'static str],
}

impl Counter<'_> {
    /// The instructions of a run in the function with this name, and in what it calls.
    fn count(self, function: &str, run: Run) -> Result<u64, String> {
        let only = format!("--toggle-collect=*bench*tcp*{function}*");
        let text = run.text();
        collected_of(self.program, self.arguments.iter().copied().chain([text.as_str()]), &[&only])
    }
    fn difference(self, function: &str, runs: [Run; 2]) -> Result<f64, String> {
        let [short, long] = runs.map(|run| self.count(function, run));
        match (short?, long?) {
            (short, long) if long > short => Ok((long - short) as f64),
            _ => Err(format!("callgrind does not find the function '{function}'")),
        }
    }
    /// The instructions of input and of output per packet of an echo.
    ///
    /// # Errors
    /// callgrind or the program fails.
    pub fn echo(self, contestant: Contestant, size: usize) -> Result<[f64; 2], String> {
        let [short, long] = ECHOES;
        let packets = (2 * (long - short) * PAIRS) as f64;
        let runs = ECHOES.map(|amount| Run { contestant, work: Work::Echo(size), amount });
        let [input, output] = PHASES.map(|phase| self.difference(phase, runs));
        Ok([input? / packets, output? / packets])
    }
    /// The instructions of both hosts per packet with data.
    ///
    /// # Errors
    /// callgrind or the program fails.
    pub fn bulk(self, contestant: Contestant, burst: usize) -> Result<f64, String> {
        let runs = BYTES.map(|amount| Run { contestant, work: Work::Bulk(burst), amount });
        let mut segments = [0.0; 2];
        for (n, run) in segments.iter_mut().zip(runs) {
            *n = contestant.bulk(burst)?.transfer(run.amount)?.segments;
        }
        let [short, long] = segments;
        Ok(self.difference("transferred", runs)? / (long - short))
    }
}
