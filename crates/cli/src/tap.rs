// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet tap`: copies the packets that pass a port of a running router, to a file or into another program.

use crate::ctl::{Connection, Failure, exit, seconds};
use crate::load::complain;
use crate::trace::capture::{Broken, Capture, create};
use crate::trace::router::Session;
use crate::trace::step::hex;
use crate::trace::{complain_of_unknown, repeat};
use clap::Args;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// `castanet tap`.
#[derive(Args)]
#[command(after_help = "Examples:\n  castanet tap router.sock 'queue[0]' --write queue.pcapng\n  \
    castanet tap 7777 '[0]rt' 'icmp' | wireshark -k -i -\n  castanet tap 7777 'arpq' -n 5 | tshark -r -\n\n\
    Exit codes: 0 done, 1 an error, 2 the command line was wrong, 3 no connection to the router.")]
pub struct Tap {
    #[command(flatten)]
    pub connection: Connection,
    /// The port: ELEMENT[OUTPUT] or [INPUT]ELEMENT. ELEMENT alone is its output 0.
    #[arg(value_name = "PORT")]
    pub point: String,
    /// Which packets to copy: an expression of IPFilter; default: all.
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// End after so many packets.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Copy at most so many bytes of each packet.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub bytes: Option<u32>,
    /// The pcapng file to write; default: standard output.
    #[arg(short, long, value_name = "FILE.pcapng")]
    pub write: Option<PathBuf>,
}

/// Copies packets.
pub fn main(a: &Tap) -> ExitCode {
    match tap(a) {
        // The program that reads the packets has ended, as `head` does.
        Err(Ended::Closed) | Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Failed(e)) => exit(Err(e)),
    }
}

enum Ended {
    Closed,
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(e: Failure) -> Ended {
        Ended::Failed(e)
    }
}
impl From<Broken> for Ended {
    fn from(e: Broken) -> Ended {
        match e {
            Broken::Closed => Ended::Closed,
            other => Ended::Failed(other.into()),
        }
    }
}

fn output(a: &Tap) -> Result<Box<dyn Write>, Failure> {
    let Some(file) = &a.write else {
        if std::io::stdout().is_terminal() {
            return Err("standard output is a terminal; write to a file with --write, or into a program: \
                        castanet tap ... | wireshark -k -i -"
                .to_string()
                .into());
        }
        return Ok(Box::new(BufWriter::new(std::io::stdout())));
    };
    create(file)
}

fn tap(a: &Tap) -> Result<(), Ended> {
    if a.point.contains(char::is_whitespace) {
        let text = format!("'{}': expected ELEMENT[OUTPUT] or [INPUT]ELEMENT", a.point);
        return Err(Failure::Here(text).into());
    }
    let out = output(a)?;
    let mut client = a.connection.open()?;
    let (count, bytes) = (a.count.unwrap_or(0), a.bytes.unwrap_or(0));
    let request = format!("{} {count} {bytes} {}", a.point, a.filter.join(" "));
    let mut session = Session::begin(&mut client, "tap", &request)?;
    let mut capture = Capture::new(out, &a.point)?;
    capture.flush()?;
    let (mut copied, mut lost, mut unknown) = (0, 0, 0);
    let mut poll = || -> Result<bool, Ended> {
        let lines = session.read()?;
        lost = lines.lost.max(lost);
        for line in &lines.lines {
            let words: Vec<&str> = line.split('\t').collect();
            let [time, _, network, length, data] = words[..] else {
                unknown += 1;
                continue;
            };
            let (Ok(time), Ok(length), Some(data)) = (time.parse(), length.parse(), hex(data)) else {
                unknown += 1;
                continue;
            };
            capture.write(time, &data, length, network.parse().ok(), None)?;
            copied += 1;
        }
        capture.flush()?;
        Ok(lines.state.first().is_some_and(|s| s == "over") && lines.lines.is_empty())
    };
    repeat(a.seconds, &mut poll)?;
    poll()?;
    if lost > 0 {
        complain(&format!("{lost} packets were lost, because they were not read in time"));
    }
    complain_of_unknown(unknown);
    if a.write.is_some() {
        let packets = if copied == 1 { "packet" } else { "packets" };
        let _ = writeln!(std::io::stderr(), "{copied} {packets} copied");
    }
    Ok(())
}
