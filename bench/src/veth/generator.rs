// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traffic generator sends UDP packets at a steady rate. It sends many per system call, or lets the kernel
//! generate them.

use castanet_io::device::{LiveFrame, LiveSender, MAX_BATCH, Outgoing, PacketSender, Refusal};
use castanet_wire::{Ipv4Header, udp};
use std::fs;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// The number of flows, which differ in their source port.
const FLOWS: u16 = MAX_BATCH as u16;
/// The total length of all headers of a frame, in bytes.
const HEADERS: usize = 42;

/// The method of packet generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The generator sends many frames per system call on a packet socket.
    Packet,
    /// The kernel generates the frames and redirects them to a device (see [`LiveSender`]).
    Live,
}

impl Generator {
    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Generator::Packet => "packet",
            Generator::Live => "live",
        }
    }
}

impl std::str::FromStr for Generator {
    type Err = String;
    fn from_str(text: &str) -> Result<Generator, String> {
        let all = [Generator::Packet, Generator::Live];
        all.into_iter()
            .find(|g| g.name() == text)
            .ok_or_else(|| format!("'{text}' is not 'packet' or 'live'"))
    }
}

/// The addresses of the packets.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Ethernet source and destination.
    pub ether: [[u8; 6]; 2],
    /// IP source and destination.
    pub ip: [u32; 2],
}

/// One frame of `length` bytes for each flow.
pub fn frames(a: Addresses, length: usize) -> Vec<Vec<u8>> {
    let length = length.clamp(60, 1514);
    let one = |i: u16| {
        // The length is at most 1514, so the casts below are lossless.
        let mut header = Ipv4Header::new(17, a.ip[0], a.ip[1], (length - 14) as u16, 64);
        header.id.set(i);
        header.set_checksum20();
        let mut datagram = Vec::with_capacity(length);
        datagram.extend((1024 + i).to_be_bytes());
        datagram.extend(9u16.to_be_bytes());
        datagram.extend(((length - 34) as u16).to_be_bytes());
        datagram.resize(length - 34, 0);
        udp::set_checksum(a.ip[0], a.ip[1], &mut datagram);
        [&a.ether[1], &a.ether[0], &[8, 0][..], &header.to_bytes(), &datagram].concat()
    };
    debug_assert!(length > HEADERS);
    (0..FLOWS).map(one).collect()
}

/// The template frame, `length` bytes long, from which the kernel makes 64 flows. From flow to flow the kernel
/// increases the low byte of the source port by 1, and decreases the second payload byte by 1. Both are low bytes of
/// 16-bit words, so the UDP checksum stays correct.
pub fn live_frame(a: Addresses, length: usize) -> LiveFrame {
    const FLOW: [u8; 2] = [35, 43];
    let mut bytes = frames(a, length).swap_remove(0);
    if let Some((_, datagram)) = bytes.split_at_mut_checked(34) {
        // Sets the second payload byte for the first flow. The kernel counts down from this value.
        if let Some(counter) = datagram.get_mut(usize::from(FLOW[1]) - 34) {
            *counter = castanet_io::device::LIVE_FLOWS - 1;
        }
        udp::set_checksum(a.ip[0], a.ip[1], datagram);
    }
    LiveFrame { bytes, flow: FLOW }
}

/// The device at which forwarded packets arrive.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The process that holds the receiving host.
    pub receiver: u32,
    /// The device on that host.
    pub device: String,
}

/// The CPU or process whose CPU time counts as the cost of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The CPU time of everything that runs on this CPU.
    Processor(usize),
    /// The CPU time of this process.
    Process(u32),
}

impl Worker {
    /// CPU time used so far; zero if the kernel does not report it.
    fn used(self) -> Duration {
        match self {
            Worker::Processor(cpu) => {
                let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
                Duration::from_millis(used(&stat, cpu).unwrap_or(0).saturating_mul(10))
            }
            Worker::Process(pid) => times(pid).0,
        }
    }

    /// The time that a process was runnable while another program occupied the CPU. Zero if `self` is a CPU, or the
    /// generator's own process.
    fn waited(self) -> Duration {
        match self {
            Worker::Process(pid) if pid != std::process::id() => times(pid).1,
            _ => Duration::ZERO,
        }
    }
}

/// The run time and waiting time of all threads of a process (Documentation/scheduler/sched-stats); zero if the
/// kernel does not report it.
fn times(pid: u32) -> (Duration, Duration) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |t: fs::DirEntry| {
        let text = fs::read_to_string(t.path().join("schedstat")).ok()?;
        let mut words = text.split_whitespace().map_while(|w| w.parse().ok().map(Duration::from_nanos));
        Some((words.next()?, words.next()?))
    };
    threads.filter_map(of).fold(Default::default(), |a: (Duration, Duration), t| (a.0 + t.0, a.1 + t.1))
}

impl Arrivals {
    /// The number of packets that have arrived.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn count(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/net/dev", self.receiver);
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        received(&text, &self.device).ok_or_else(|| format!("{path}: no device {}", self.device))
    }
}

/// The number of packets that a device has received, from the text of `/proc/net/dev`.
fn received(text: &str, device: &str) -> Option<u64> {
    let of = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        if name.trim() == device { numbers.split_whitespace().nth(1)?.parse().ok() } else { None }
    };
    text.lines().find_map(of)
}

/// The busy time of a CPU in hundredths of a second, from the text of `/proc/stat` (proc_stat(5)): user, system
/// and interrupt time.
fn used(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|l| l.split(' ').next() == Some(&name))?;
    let numbers: Vec<u64> = line.split_whitespace().skip(1).map_while(|w| w.parse().ok()).collect();
    Some([0, 1, 2, 5, 6].into_iter().filter_map(|i| numbers.get(i)).sum())
}

/// Packets sent in a trial, and packets received by its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The number of packets sent in total, including those sent after the end of the trial.
    pub all: u64,
    /// The number of packets sent before the end of the trial.
    pub sent: u64,
    /// The number of packets received before the end of the trial.
    pub received: u64,
    /// The duration of the trial.
    pub time: Duration,
    /// The CPU time that the [`Worker`] used during the trial.
    pub busy: Duration,
    /// The number of packets received before the trial.
    pub before: u64,
    /// The time that generator and router waited because other programs occupied their CPUs.
    pub waited: Duration,
}

impl Load {
    fn text(&self) -> String {
        let [time, busy, waited] = [self.time, self.busy, self.waited].map(|t| t.as_nanos());
        format!("{} {} {} {time} {busy} {} {waited}", self.all, self.sent, self.received, self.before)
    }

    /// Parses the line that a generator prints.
    pub fn parse(line: &str) -> Option<Load> {
        let mut words = line.split(' ').map(|w| w.parse::<u64>().ok());
        let mut next = || words.next()?;
        let (all, sent, received) = (next()?, next()?, next()?);
        let (time, busy) = (Duration::from_nanos(next()?), Duration::from_nanos(next()?));
        Some(Load { all, sent, received, time, busy, before: next()?, waited: Duration::from_nanos(next()?) })
    }
}

/// The counters at the start of a trial.
struct Watch<'a> {
    arrivals: &'a Arrivals,
    worker: Worker,
    start: Instant,
    received: u64,
    used: Duration,
    waited: Duration,
}

fn waited(worker: Worker) -> Duration {
    times(std::process::id()).1 + worker.waited()
}

impl Watch<'_> {
    fn start(arrivals: &Arrivals, worker: Worker) -> Result<Watch<'_>, String> {
        let (received, used, waited) = (arrivals.count()?, worker.used(), waited(worker));
        Ok(Watch { arrivals, worker, start: Instant::now(), received, used, waited })
    }
    /// The load of a trial that ends now, after `sent` packets.
    fn end(&self, sent: u64) -> Result<Load, String> {
        let time = self.start.elapsed();
        let received = self.arrivals.count()?.saturating_sub(self.received);
        let busy = self.worker.used().saturating_sub(self.used);
        let waited = waited(self.worker).saturating_sub(self.waited);
        Ok(Load { all: sent, sent, received, time, busy, before: self.received, waited })
    }
}

/// Sends with a packet socket.
fn send(
    sender: &mut PacketSender,
    frames: &[Vec<u8>],
    rate: f64,
    time: Duration,
    watch: Watch<'_>,
) -> Result<Load, String> {
    let mut sent = 0u64;
    loop {
        let elapsed = watch.start.elapsed();
        if elapsed >= time {
            return watch.end(sent);
        }
        let due = elapsed.as_secs_f64() * rate - sent as f64;
        let n = if rate > 0.0 { due.clamp(0.0, MAX_BATCH as f64) as usize } else { MAX_BATCH };
        if n == 0 {
            std::hint::spin_loop();
            continue;
        }
        let done = sender.send(
            frames
                .iter()
                .cycle()
                .skip(sent as usize % frames.len().max(1))
                .take(n)
                .map(|f| Outgoing::plain(f)),
        );
        sent += done.count as u64;
        match done.refusal {
            None | Some(Refusal::Full | Refusal::Congested) => {}
            Some(r) => return Err(format!("{}: a frame was refused: {r:?}", sender.name())),
        }
    }
}

/// An initialised sender.
pub enum Sender {
    /// A packet socket, with the frames of all flows.
    Packet(PacketSender, Vec<Vec<u8>>),
    /// A sender in the kernel.
    Live(LiveSender),
}

impl Sender {
    /// Opens a device.
    ///
    /// # Errors
    /// The device is missing, or the kernel does not permit or support it.
    pub fn open(
        generator: Generator,
        device: &str,
        addresses: Addresses,
        length: usize,
    ) -> Result<Sender, String> {
        let text = |e: castanet_io::device::DeviceError| e.to_string();
        Ok(match generator {
            Generator::Packet => {
                Sender::Packet(PacketSender::open(device).map_err(text)?, frames(addresses, length))
            }
            Generator::Live => {
                Sender::Live(LiveSender::open(device, live_frame(addresses, length)).map_err(text)?)
            }
        })
    }

    /// Sends `rate` packets per second for a time; if the rate is 0, as many as possible.
    fn send<'a>(
        &mut self,
        rate: f64,
        time: Duration,
        watch: impl FnOnce() -> Result<Watch<'a>, String> + Send,
    ) -> Result<Load, String> {
        match self {
            Sender::Packet(sender, frames) => send(sender, frames, rate, time, watch()?),
            Sender::Live(sender) => {
                let at_end = |watch: Result<Watch<'_>, String>, sent| watch?.end(sent);
                let (load, all) = sender.send(rate, time, watch, at_end).map_err(|e| e.to_string())?;
                Ok(Load { all, ..load? })
            }
        }
    }
}

/// Runs the trials that standard input requests: one `RATE MILLISECONDS` per line, until the end of input.
///
/// # Errors
/// The device does not accept frames.
pub fn serve(mut sender: Sender, arrivals: &Arrivals, worker: Worker) -> Result<(), String> {
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("standard input: {e}"))?;
        let asked = line.split_once(' ').and_then(|(rate, ms)| Some((rate.parse().ok()?, ms.parse().ok()?)));
        let (rate, ms) = asked.ok_or_else(|| format!("'{line}' is not RATE MILLISECONDS"))?;
        let load = sender.send(rate, Duration::from_millis(ms), || Watch::start(arrivals, worker))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", load.text())
            .and_then(|()| out.flush())
            .map_err(|e| format!("standard output: {e}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn frames_are_right() {
        let a = Addresses { ether: [[2; 6], [4; 6]], ip: [0x0a00_0002, 0x0a00_0102] };
        for (asked, length) in [(0, 60), (60, 60), (61, 61), (1514, 1514), (9000, 1514)] {
            let all = frames(a, asked);
            assert_eq!(all.len(), 64);
            for (i, f) in all.iter().enumerate() {
                assert_eq!(f.len(), length);
                assert_eq!(f[..14], [4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 8, 0]);
                assert!(Ipv4Header::checked(&f[14..], true).is_ok());
                assert!(udp::checksum_ok(a.ip[0], a.ip[1], &f[34..]));
                assert_eq!(f[34..38], [4, i as u8, 0, 9]);
            }
        }
    }

    #[test]
    fn live_frames_are_right_in_every_flow() {
        let a = Addresses { ether: [[2; 6], [4; 6]], ip: [0x0a00_0002, 0x0a00_0102] };
        for length in [60, 61, 1514] {
            let LiveFrame { bytes, flow: [up, down] } = live_frame(a, length);
            assert_eq!(bytes.len(), length);
            for i in 0..castanet_io::device::LIVE_FLOWS {
                let mut f = bytes.clone();
                (f[usize::from(up)], f[usize::from(down)]) = (i, i ^ (castanet_io::device::LIVE_FLOWS - 1));
                assert!(Ipv4Header::checked(&f[14..], true).is_ok());
                assert!(udp::checksum_ok(a.ip[0], a.ip[1], &f[34..]));
                assert_eq!(f[34..38], [4, i, 0, 9]);
            }
        }
    }

    #[test]
    fn generators_have_names() {
        for g in [Generator::Packet, Generator::Live] {
            assert_eq!(g.name().parse(), Ok(g));
        }
        assert_eq!("lively".parse::<Generator>(), Err("'lively' is not 'packet' or 'live'".into()));
    }

    #[test]
    fn what_the_system_tells_is_read() {
        let dev = "Inter-|   Receive\n face |bytes    packets errs\n    lo: 5 7 0\n  eth0:1234 42 0 0\neth01: 9 9 9\n";
        for (device, want) in [("lo", Some(7)), ("eth0", Some(42)), ("eth01", Some(9)), ("eth", None)] {
            assert_eq!(received(dev, device), want);
        }
        let stat =
            "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 1 2 3 40 5 6 7 800 9 10\ncpu1 1 2 3 4\ncpu10 0 0 0 9 9\nintr 5\n";
        for (cpu, want) in [(0, Some(19)), (1, Some(6)), (10, Some(0)), (2, None)] {
            assert_eq!(used(stat, cpu), want);
        }
    }

    #[test]
    fn processor_time_is_told() {
        let me = Worker::Process(std::process::id());
        let before = me.used();
        let start = Instant::now();
        // The CPU time is a sum over threads, so it falls when a thread of another test ends.
        while me.used() <= before && start.elapsed() < Duration::from_secs(100) {}
        assert!(me.used() > before);
        assert_eq!(Worker::Process(u32::MAX).used(), Duration::ZERO);
        assert!(Worker::Processor(0).used() > Duration::ZERO);
    }

    #[test]
    fn loads_travel_as_lines() {
        let time = Duration::from_nanos(1_234_567);
        let load = Load { all: 11, sent: 9, received: 7, time, busy: time / 2, before: 3, waited: time / 4 };
        assert_eq!(Load::parse(&load.text()), Some(load));
        for bad in ["", "1 2 3 4 5", "1 2 3 4 5 6", "1 2 3 4 5 6 x", "-1 2 3 4 5 6 7"] {
            assert_eq!(Load::parse(bad), None);
        }
    }
}
