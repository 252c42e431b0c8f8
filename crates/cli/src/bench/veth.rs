// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench veth`: compares Castanet's router between two devices with the kernel's router.

mod presets;
mod routers;
mod tasks;
#[cfg(test)]
mod tests;

use super::results::Results;
use castanet_bench::veth::{self, Figure, Generator, Settings, report};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use presets::{Kernel, Ways};
pub(super) use routers::Driver;
use routers::{Task, contenders};
pub(super) use tasks::with_driver;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures the forwarding rate against the offered rate, of a router and of the kernel's router.

The sender, both routers and the receiver are network namespaces on this machine, joined by veth: sender - router - receiver. This needs \
no privileges where user namespaces are allowed. A generator sends small UDP packets at a steady rate on one \
processor; the router runs on another. Each rate is offered several times, to the kernel and to Castanet alternately, \
and the medians are shown:

  forwarded  packets a second that arrived at this offered rate
  lost       the share of the packets that did not arrive
  ns         processor time per packet in nanoseconds, see below

A good router forwards the offered rate up to a peak, and keeps the peak rate beyond it. A router whose rate falls under overload \
spends its time on packets that it drops later (Figure 17 of \"The Click Modular Router\"). The last rows are the peak, \
the loss-free rate (the greatest rate with almost no loss, found by bisection), and the rate under overload.

With root's rights the kernel generates the packets, faster than any program can send them (live frames, Linux 5.18). \
Otherwise, or with --generator packet, a packet socket sends them, many in one system call.

The receiver drops packets as early as a host can. Over veth, receive processing runs on the sender's processor: it puts packets \
into the ring of Castanet's packet socket, or forwards them through the kernel's router. So the kernel's rates and times are those \
of a processor that also generates, and Castanet's are those of the other processor. \
With --steer, which needs root, receive processing runs \
on the routers' processor, as with a network card whose interrupts go there (Receive Packet Steering).

With --driver xdp, the elements that can run in the kernel do, at the driver of the device. They run where the kernel's router runs, \
on the generator's processor. Beside them, two programs are measured that are written by hand: xdp-forwarder makes the same checks of \
RFC 1812 as the IP router does on its usual path, and xdp-drop drops all frames, so its time is that of everything before a program. \
A further table shows for each program:

  ns a run   time of the program alone, as the kernel counts it (BPF_ENABLE_STATS)
  executed   instructions that it executes for one packet, of how many it has
  stayed     the share of forwarded packets that did not leave the kernel
  net        ns of a packet in the flood, without those of xdp-drop, and the ratio to that of xdp-forwarder

Several tasks or numbers of pairs (--task route,firewall; --pairs 1,4) are measured in one run, alternately. One more table compares \
each router with that of the first task, or of the fewest pairs: the ratio of the rates, and for programs the ns and instructions \
that they take more.

Several frame lengths, numbers of flows and directions (--length 60,1514; --flows 1,2,4; --ways one,both) are also measured in one \
run. A flow goes from one interface of each router to another; one generator sends on all of them in turn, and rates are sums. With \
--points 0 only the greatest rate is offered (saturation).

Behind programs, and then also behind the kernel's router, the receiver drops packets by a program, which is cheaper. With \
--task forward, af-xdp-bare forwards by the same AF_XDP sockets as --driver af-xdp, but without a router.

--figure draws a figure of a paper. It chooses drivers, tasks and traffic, and each of these options overrides the choice. The values that \
the paper states in its text are printed beside ours:

  tocs-17  TOCS 2000, Figure 17: forwarded against offered rate of the IP router
  sosp-15  SOSP 1999, Figure 15: the same, and of routers that only forward
  sosp-16  SOSP 1999, Figure 16: the maximum forwarding rate against the frame length
  sosp-17  SOSP 1999, Figure 17: forwarded against offered rate of the IP router, with RED, with fair queueing, and of a switch
  hpsr-4   HPSR 2005, Figure 4: packets received and discarded on one to eight interfaces
  hpsr-5   HPSR 2005, Figure 5: packets that the router itself sends on one to eight interfaces
  hpsr-6a  HPSR 2005, Figure 6(a): one to four flows, transferred uninspected; offered, received and transmitted
  hpsr-6b  HPSR 2005, Figure 6(b): four flows, one way and both ways, in Gbit/s for payloads of 46 to 1500 bytes
  hpsr-7   HPSR 2005, Figure 7: one to three flows through IP routers";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench veth --seconds 60 --svg veth.svg --csv veth.csv
  castanet bench veth --json --points 5 --rounds 1 --seconds 10
  castanet bench veth --shield --burden 100
  castanet bench veth --shield --driver packet,af-xdp,xdp
  castanet bench veth --shield --driver packet,af-xdp --task forward
  castanet bench veth --shield --driver xdp --pairs 1,2,3,4
  castanet bench veth --shield --driver xdp --task route,firewall
  castanet bench veth --shield --figure tocs-17 --svg figure-17.svg
  castanet bench veth --shield --figure hpsr-6a --seconds 120 --rounds 5 --svg figure-6a.svg --csv figure-6a.csv
  castanet bench veth --shield --driver packet,xdp --length 60,508,1514 --points 3
  castanet bench veth --shield --driver packet,xdp --flows 1,2,4 --points 0
  castanet bench veth my-router.click

Your own configuration can use the devices `in` (10.0.0.1/24) and `out` (10.0.1.1/24). Packets go from 10.0.0.2 to 10.0.1.2. \
No host answers ARP, so it must set the Ethernet address of 10.0.1.2 to 02:00:00:00:00:ff, or to any other address. \
`FromDevice(in) -> Queue -> ToDevice(out);` measures the cost of the devices alone.";

/// `castanet bench veth`.
#[derive(Args)]
pub struct Veth {
    /// The router's configuration; default: the output of `castanet new ip-router`.
    #[arg(value_name = "FILE")]
    pub file: Option<String>,
    /// Total time of all measurements, in seconds.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds)]
    pub seconds: f64,
    /// Number of offered rates, besides the greatest that the generator can send; default: 12.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=100))]
    pub points: Option<u16>,
    /// Number of trials per rate.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: u16,
    /// Bytes of each Ethernet frame, without its check sequence; default: 60. Each of several lengths is measured with each router.
    #[arg(
        long = "length",
        value_name = "BYTES",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(60..=1514)
    )]
    pub lengths: Vec<u16>,
    /// The number of pairs of interfaces that packets cross, at equal rates; default: 1. Each of several numbers is measured with
    /// each router. The rates are the sums of all pairs.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        conflicts_with = "file",
        value_parser = clap::value_parser!(u8).range(1..=8)
    )]
    pub flows: Vec<u8>,
    /// The directions in which packets cross a pair; default: one. With `one,both`, both are measured with each router.
    #[arg(long, value_name = "one|both", value_delimiter = ',', conflicts_with = "file")]
    pub ways: Vec<Ways>,
    /// The largest loss at which a rate counts as loss-free, in percent of the packets.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, value_parser = percent)]
    pub tolerance: f64,
    /// Processors of the generator and of the routers; by default the first two.
    #[arg(long, value_name = "N,N", value_parser = processors)]
    pub processors: Option<[usize; 2]>,
    /// Run the receive path of the routers on their processor too; needs root.
    #[arg(long)]
    pub steer: bool,
    /// The generator: `packet` (a packet socket) or `live` (the kernel); default: live where it is permitted.
    #[arg(long, value_name = "packet|live")]
    pub generator: Option<Generator>,
    /// Hide the frames of Castanet's devices from the host's network stack. Without this option, the stack
    /// also looks up a route for each packet, on the generator's processor.
    #[arg(long, conflicts_with = "file")]
    pub shield: bool,
    /// Slow down Castanet's router by this number of extra checks per packet, so that the generator can send
    /// packets at twice the router's rate.
    #[arg(long, value_name = "N", conflicts_with = "file", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub burden: u16,
    /// How Castanet's routers receive and send: through packet sockets (the default), through AF_XDP sockets (METHOD XDP; needs root), or
    /// in the kernel as far as possible (`castanet run --driver xdp`; needs root). Each driver is a router of its own.
    #[arg(long = "driver", value_name = "DRIVERS", conflicts_with = "file", value_delimiter = ',')]
    pub drivers: Vec<Driver>,
    /// The task of Castanet's routers: `route` as the IP router (the default), `firewall`: route, behind a firewall of 17 rules,
    /// `red`: route, with RED before each queue, `sfq`: route, with fair queueing in place of each queue, `switch` as an Ethernet switch,
    /// `forward` all packets from one device to the other, `receive`: discard all packets but one of 64, which is forwarded and stands
    /// for all, or `send` packets of their own. Each of several tasks is a router of its own, and is compared with the first.
    #[arg(long = "task", value_name = "TASKS", value_delimiter = ',', conflicts_with_all = ["file", "burden"])]
    pub tasks: Vec<Task>,
    /// The number of pairs of interfaces of Castanet's routers; default: as many as packets cross (--flows). The others are idle. Each
    /// of several numbers makes a router of its own, which is compared with the smallest.
    #[arg(
        long,
        value_name = "NUMBERS",
        conflicts_with = "file",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u8).range(1..=8)
    )]
    pub pairs: Vec<u8>,
    /// The task of the kernel, with which all are compared: `route` IPv4 (the default), `transfer` all frames from one device to the other
    /// by a filter of tc, `receive` packets and drop them, or `send` packets of its own.
    #[arg(long, value_enum, value_name = "TASK", conflicts_with = "file")]
    pub kernel: Option<Kernel>,
    /// Draw a figure of a paper, see below. It chooses what other options do not choose.
    #[arg(long, value_name = "FIGURE", conflicts_with = "file", value_parser = figure())]
    pub figure: Option<Figure>,
    #[command(flatten)]
    pub results: Results,
}

/// Arguments of a helper process of a measurement.
#[derive(Args)]
pub struct Part {
    /// The name of the process's task, and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Reads the name of a figure.
fn figure() -> impl TypedValueParser<Value = Figure> {
    PossibleValuesParser::new(Figure::ALL.map(Figure::name)).try_map(|name| name.parse::<Figure>())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
    percent.ok_or_else(|| "expected a number from 0 to 100".to_string())
}

pub(super) fn processors(text: &str) -> Result<[usize; 2], String> {
    let both = text.split_once(',').and_then(|(a, b)| Some([a.parse().ok()?, b.parse().ok()?]));
    both.filter(|p| p.iter().all(|n| *n < 1024)).ok_or_else(|| "expected two numbers, as in 0,1".to_string())
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Veth) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let chosen = a.chosen()?;
    let (routers, notes) = contenders(a)?;
    let results = veth::run_all(&Settings {
        program,
        figure: a.figure,
        notes,
        kernel: chosen.kernel,
        traffic: chosen.traffic(),
        search: chosen.search,
        count_received: chosen.count_received,
        part: ["bench", "veth-part"].map(str::to_string).into(),
        routers,
        seconds: a.seconds,
        points: chosen.points.into(),
        rounds: a.rounds.into(),
        tolerance: a.tolerance / 100.0,
        processors: a.processors,
        steer: a.steer,
        generator: a.generator,
    })?;
    a.results.show(
        || report::csv(&results),
        || veth::svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}

/// Runs a helper process.
pub fn part(part: &Part) -> Result<(), String> {
    veth::part::run(&part.words)
}
