// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traffic generator sends UDP packets at a steady rate. It sends many per system call, or lets the kernel
//! generate them.

mod load;

use castanet_io::device::{LiveFrame, LiveSender, MAX_BATCH, Outgoing, PacketSender, Refusal};
use castanet_wire::{Ipv4Header, udp};
use load::Watch;
use std::io::{BufRead, Write};
use std::time::Duration;

pub use load::{Arrivals, Load, Worker};

/// The number of flows. They differ in their source port.
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
#[derive(Clone, Copy, Debug, Default)]
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

/// A packet socket, with the frames of all flows and the number of frames sent.
pub struct Socket {
    sender: PacketSender,
    frames: Vec<Vec<u8>>,
    sent: usize,
}

impl Socket {
    /// Sends this number of frames. Returns the number of frames that the kernel took.
    fn send(&mut self, n: usize) -> Result<u64, String> {
        let frames = self.frames.iter().cycle().skip(self.sent % self.frames.len().max(1)).take(n);
        let done = self.sender.send(frames.map(|f| Outgoing::plain(f)));
        self.sent += done.count;
        match done.refusal {
            None | Some(Refusal::Full | Refusal::Congested) => Ok(done.count as u64),
            Some(r) => Err(format!("{}: a frame was refused: {r:?}", self.sender.name())),
        }
    }
}

/// Sends with packet sockets, which take turns.
fn send(sockets: &mut [Socket], rate: f64, time: Duration, watch: Watch<'_>) -> Result<Load, String> {
    let mut sent = 0u64;
    let mut turn = 0;
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
        turn = (turn + 1) % sockets.len().max(1);
        match sockets.get_mut(turn) {
            Some(socket) => sent += socket.send(n)?,
            None => return Err("no device to send on".into()),
        }
    }
}

/// An initialised sender.
pub enum Sender {
    /// No sender: the router makes the packets.
    None,
    /// A packet socket for each device.
    Packet(Vec<Socket>),
    /// A sender in the kernel.
    Live(LiveSender),
}

impl Sender {
    /// Opens devices, to send packets with these addresses on each of them in turn.
    ///
    /// # Errors
    /// A device is missing, or the kernel does not permit or support it.
    pub fn open(
        generator: Generator,
        devices: &[(String, Addresses)],
        length: usize,
    ) -> Result<Sender, String> {
        let text = |e: castanet_io::device::DeviceError| e.to_string();
        if devices.is_empty() {
            return Ok(Sender::None);
        }
        Ok(match generator {
            Generator::Packet => {
                let open = |(device, addresses): &(String, Addresses)| {
                    let sender = PacketSender::open(device).map_err(text)?;
                    Ok(Socket { sender, frames: frames(*addresses, length), sent: 0 })
                };
                Sender::Packet(devices.iter().map(open).collect::<Result<_, String>>()?)
            }
            Generator::Live => {
                let frames = devices.iter().map(|(device, a)| (device.clone(), live_frame(*a, length)));
                Sender::Live(LiveSender::open_several(frames.collect()).map_err(text)?)
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
            Sender::None => {
                let watch = watch()?;
                std::thread::sleep(time);
                let load = watch.end(0)?;
                Ok(Load { all: load.received, sent: load.received, ..load })
            }
            Sender::Packet(sockets) => send(sockets, rate, time, watch()?),
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
}
