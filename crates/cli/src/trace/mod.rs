// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet trace`: follows packets through a router, and shows what each element does with them.

pub mod capture;
mod change;
mod file;
pub mod router;
pub mod step;
pub mod text;

use crate::ctl::{Connection, Failure, seconds, value_out};
use crate::load::{complain, write_out};
use capture::Capture;
use castanet_control::client::Address;
use clap::Args;
use router::{Observed, Session};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use step::{Packets, Step};
use text::Classes;

/// The time between two readings of a trace or tap.
const INTERVAL: Duration = Duration::from_millis(50);

/// `castanet trace`.
#[derive(Args)]
#[command(
    after_help = "The router may run already, or be a configuration, which is then run until the packets have been \
    followed.\n\nExamples:\n  castanet trace router.sock 'icmp'\n  castanet trace 7777 'udp && dst port 53' -n 3 --json\n  \
    castanet trace router.click 'dst 10.0.0.2' --write way.pcapng\n\n\
    Exit codes: 0 done, 1 an error, 2 the command line was wrong, 3 no connection to the router."
)]
pub struct Trace {
    /// A running router (HOST:PORT, PORT, or the file of a Unix socket), or a configuration file to run.
    #[arg(value_name = "ADDRESS | FILE")]
    pub router: String,
    /// Which packets to follow: an expression of IPFilter; default: all.
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// The number of packets to follow, at most 1000.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// End the trace after this time, whatever has been followed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Print one JSON object per packet.
    #[arg(long)]
    pub json: bool,
    /// Also write the packet at each step to a pcapng file, with what the element did as its comment.
    #[arg(short, long, value_name = "FILE.pcapng")]
    pub write: Option<PathBuf>,
    /// The file with the router's control token; default: $CASTANET_TOKEN_FILE.
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Run the configuration under simulated time.
    #[arg(long)]
    pub simtime: bool,
    #[command(flatten)]
    pub privileges: crate::privileges::Privileges,
}

/// Follows packets.
pub fn main(a: &Trace) -> ExitCode {
    crate::ctl::exit(trace(a))
}

/// Whether a word names a configuration file, and not the socket of a router.
fn is_configuration(word: &str) -> bool {
    std::fs::metadata(word).is_ok_and(|m| !m.file_type().is_socket() && !m.is_dir())
}

fn trace(a: &Trace) -> Result<(), Failure> {
    if is_configuration(&a.router) {
        if a.token.is_some() {
            return Err(
                format!("--token is for a running router, and {} is a configuration", a.router).into()
            );
        }
        return file::trace(a);
    }
    if a.simtime {
        let text = format!("--simtime is for configuration files, and there is no file {}", a.router);
        return Err(text.into());
    }
    let address = a.router.parse::<Address>().map_err(|e| e.to_string())?;
    let timeout = Duration::from_secs(60);
    let mut client = Connection { address, token: a.token.clone(), timeout }.open()?;
    let mut follower = Follower::begin(&mut client, a)?;
    repeat(a.seconds, || follower.poll())?;
    follower.poll()?;
    follower.finish()
}

/// Returns a flag that Ctrl-C and SIGTERM set.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, flag.clone())
            .map_err(|e| format!("signals cannot be caught: {}", crate::load::reason(&e)))?;
    }
    Ok(flag)
}

/// Shows the steps of packets.
struct Output<'a> {
    a: &'a Trace,
    classes: Classes,
    capture: Option<Capture>,
    shown: u64,
}

impl Output<'_> {
    /// Shows a packet. `is_whole` is false if the packet is still in the router.
    fn show<R: Observed>(&mut self, steps: &[Step], is_whole: bool, router: &mut R) -> Result<(), Failure> {
        for step in steps {
            if !self.classes.contains_key(&step.element) {
                // A hot swap may have removed the element.
                let class = router.read(&format!("{}.class", step.element), "").unwrap_or_default();
                self.classes.insert(step.element.clone(), class.trim().to_string());
            }
        }
        if self.a.json {
            value_out(&text::json(steps, &self.classes, is_whole))?;
        } else {
            let gap = if self.shown > 0 { "\n" } else { "" };
            let more = if is_whole { "" } else { "  (still in the router, or the last steps were lost)\n" };
            write_out(None, &format!("{gap}{}{more}", text::text(steps, &self.classes)))?;
        }
        self.shown += 1;
        self.write(steps)
    }

    /// Writes the steps of a packet to the capture. Steps that end the packet have the bytes of the step before.
    fn write(&mut self, steps: &[Step]) -> Result<(), Failure> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let mut last = std::collections::BTreeMap::new();
        for (step, comment) in steps.iter().zip(text::comments(steps, &self.classes)) {
            if let Some(bytes) = &step.bytes {
                last.insert(step.part, bytes);
            }
            if let Some(b) = last.get(&step.part) {
                capture.write(step.time, &b.data, b.length, b.network, Some(&comment))?;
            }
        }
        Ok(capture.flush()?)
    }
}

/// A trace of a router's packets.
struct Follower<'a, 'r, R: Observed> {
    session: Session<'r, R>,
    output: Output<'a>,
    packets: Packets,
    lost: u64,
    /// The number of lines that are no steps.
    unknown: u64,
}

impl<'a, 'r, R: Observed> Follower<'a, 'r, R> {
    fn begin(router: &'r mut R, a: &'a Trace) -> Result<Self, Failure> {
        let capture = match &a.write {
            Some(file) => Some(Capture::new(capture::create(file)?, &a.router)?),
            None => None,
        };
        let output = Output { a, classes: Classes::new(), capture, shown: 0 };
        let request = format!("{} {}", a.count, a.filter.join(" "));
        let session = Session::begin(router, "trace", &request)?;
        Ok(Follower { session, output, packets: Packets::default(), lost: 0, unknown: 0 })
    }

    /// Shows the packets that have ended since the last call. Returns whether as many as were wanted have been followed to
    /// their ends.
    fn poll(&mut self) -> Result<bool, Failure> {
        let lines = self.session.read()?;
        self.lost = lines.lost;
        for line in &lines.lines {
            let Some(step) = Step::parse(line) else {
                self.unknown += 1;
                continue;
            };
            if let Some(steps) = self.packets.add(step) {
                self.output.show(&steps, true, self.session.router)?;
            }
        }
        Ok(lines.progress().is_over())
    }

    /// Shows the packets that are still in the router, and reports lost steps. Dropping the session ends the trace.
    fn finish(mut self) -> Result<(), Failure> {
        for steps in std::mem::take(&mut self.packets).rest() {
            self.output.show(&steps, false, self.session.router)?;
        }
        if self.lost > 0 {
            complain(&format!("{} steps were lost, because they were not read in time", self.lost));
        }
        complain_of_unknown(self.unknown);
        if self.output.shown == 0 && !self.output.a.json {
            complain("no packet that matches has entered the router");
        }
        Ok(())
    }
}

/// Reports lines of the router that could not be read.
pub fn complain_of_unknown(lines: u64) {
    if lines > 0 {
        complain(&format!("{lines} lines of the router could not be read; it may be of another version"));
    }
}

/// Calls `poll` until it returns true, until the time is over, or until Ctrl-C.
pub fn repeat<E: From<Failure>>(
    time: Option<Duration>,
    mut poll: impl FnMut() -> Result<bool, E>,
) -> Result<(), E> {
    let stop = interrupted()?;
    let end = time.map(|t| Instant::now() + t);
    while !poll()? && !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}
