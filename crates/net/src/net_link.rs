// SPDX-License-Identifier: MIT OR Apache-2.0
//! NetLink: a link between devices, in a simulated network.

use castanet_element::prelude::*;
use castanet_wire::ether::EtherAddr;
use std::collections::VecDeque;

/// Carries frames from the devices at its inputs to the devices at its outputs.
///
/// A device sends one frame at a time, for the length of the frame divided by BANDWIDTH. Until it is done, nothing is
/// pulled from it, so frames wait in the router's queue, as before a device. A frame arrives at all outputs LATENCY
/// after it was sent, but not at the device that sent it. What arrives is a new packet, as from a device: without the
/// annotations of the sender, with the time of its arrival, and with a packet type that says whether it is for this
/// device.
///
/// # Ports
/// Inputs (pull): frames that devices send. Outputs (push): frames that devices receive. Frames are lost if there are
/// no outputs.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, LENGTH 100) -> Queue -> NetLink(1:1:1:1:1:1, 2:2:2:2:2:2, LATENCY 1ms) -> Discard;
/// Script(wait 1s, stop);
/// ```
#[derive(Class)]
#[class(name = "NetLink", ports = "1-/-", processing = "l/h", packets = "any/any", offload = none)]
#[class(workers = exclusive, ledger(enters, holds), ends(Consumed), drops(Consumed, NoBuffer, Stopped))]
#[class(task, build, lifecycle)]
pub struct NetLink {
    args: Args,
    /// Frames that were sent.
    #[count(unit = "packets")]
    sent: Count,
    /// Bytes that were sent.
    #[count(unit = "bytes")]
    sent_bytes: Count,
    /// Frames that arrived, once for each device that received them.
    #[count(unit = "packets")]
    received: Count,
    senders: Vec<Sender>,
    outputs: usize,
}

/// A device that sends.
#[derive(Default)]
struct Sender {
    /// The frames on the link. Their timestamps are the times of their arrival.
    link: VecDeque<Packet>,
    /// When the device has sent its last frame, in nanoseconds.
    free: i64,
    upstream: Signal,
}

/// Arguments of NetLink.
#[derive(Args)]
pub struct Args {
    /// The Ethernet addresses of the devices: of those that send, then of those that receive. None if the devices have
    /// no link header.
    #[arg(rest, name = "DEVICE")]
    devices: Vec<EtherAddr>,
    /// The time from when a frame is completely sent until it arrives.
    #[arg(keyword, default = Nanos(1_000_000), show = "1ms")]
    latency: Nanos,
    /// The bandwidth, in bytes a second.
    #[arg(keyword, default = Bandwidth(125_000_000), show = "1Gbps")]
    bandwidth: Bandwidth,
}

impl Build for NetLink {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let ports = cx.inputs + cx.outputs;
        if !args.devices.is_empty() && args.devices.len() != ports {
            return Err(format!("{} addresses for {ports} devices", args.devices.len()).into());
        }
        if args.latency.0 < 0 {
            return Err("LATENCY: must not be negative".into());
        }
        if args.bandwidth.0 == 0 {
            return Err("BANDWIDTH: must not be 0".into());
        }
        let senders = (0..cx.inputs).map(|_| Sender::default()).collect();
        let (sent, sent_bytes, received) = Default::default();
        Ok(NetLink { args, sent, sent_bytes, received, senders, outputs: cx.outputs })
    }
}

impl NetLink {
    /// Returns how long it takes to send a frame, in nanoseconds.
    fn duration(&self, p: &Packet) -> i64 {
        let ns = p.len().max(1) as u128 * 1_000_000_000 / u128::from(self.args.bandwidth.0.max(1));
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// Emits a frame that has arrived to all devices except the one that sent it.
    fn arrive(&mut self, sender: usize, frame: Packet, cx: &mut Cx<'_>) {
        for output in 0..self.outputs {
            let device = self.args.devices.get(self.senders.len() + output);
            if device.is_some() && device == self.args.devices.get(sender) {
                continue;
            }
            let Some(mut p) = Packet::copy_of(frame.data()) else {
                cx.count_drops(Reason::NoBuffer, 1);
                continue;
            };
            p.set_timestamp(frame.timestamp());
            if let Some(device) = device {
                p.set_packet_type(packet_type(p.data(), *device));
                p.set_mac_header(0);
            }
            self.received.add(1);
            cx.entered(1);
            cx.emit(output, p);
        }
        cx.drop(frame, Reason::Consumed);
    }

    /// Emits at most as many frames as a turn moves. Returns whether more have arrived.
    fn deliver(&mut self, now: i64, cx: &mut Cx<'_>) -> bool {
        for moved in 0.. {
            let arrival = |s: &Sender| s.link.front().map(Packet::timestamp).filter(|&t| t <= now);
            let all = self.senders.iter().enumerate().filter_map(|(i, s)| Some((arrival(s)?, i)));
            let Some((_, sender)) = all.min() else { return false };
            if moved >= cx.limit() {
                return true;
            }
            if let Some(frame) = self.senders.get_mut(sender).and_then(|s| s.link.pop_front()) {
                self.arrive(sender, frame, cx);
            }
        }
        false
    }

    /// Lets each device that is free send a frame. Returns whether one of them could send another frame now.
    fn send(&mut self, now: i64, cx: &mut Cx<'_>) -> bool {
        let mut more = false;
        for i in 0..self.senders.len() {
            if self.senders.get(i).is_none_or(|s| s.free > now) {
                continue;
            }
            let pulled = cx.pull_one(i);
            let time = pulled.as_ref().map_or(0, |p| self.duration(p));
            let Some(sender) = self.senders.get_mut(i) else { continue };
            match pulled {
                Some(mut p) => {
                    self.sent.add(1);
                    self.sent_bytes.add(p.len() as u64);
                    sender.free = now.saturating_add(time);
                    p.set_timestamp(sender.free.saturating_add(self.args.latency.0));
                    sender.link.push_back(p);
                }
                None => {
                    // The device waits for its notifier.
                    more |= cx.is_on(&sender.upstream);
                    continue;
                }
            }
            more |= sender.free <= now;
        }
        more
    }
}

/// Returns the packet type of a frame for a device with this address.
fn packet_type(frame: &[u8], device: EtherAddr) -> PacketType {
    match frame.first_chunk().map(|a| EtherAddr(*a)) {
        Some(dst) if dst == device => PacketType::Host,
        Some(dst) if dst.is_broadcast() => PacketType::Broadcast,
        Some(dst) if dst.is_group() => PacketType::Multicast,
        _ => PacketType::OtherHost,
    }
}

impl Element for NetLink {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let now = cx.peek();
        if self.deliver(now, cx) {
            return Turn::More;
        }
        if self.send(now, cx) {
            return Turn::Again;
        }
        // A device that is free sleeps until its notifier wakes the task. The others are done at a known time.
        let busy = self.senders.iter().map(|s| s.free).filter(|&t| t > now);
        let arrivals = self.senders.iter().filter_map(|s| s.link.front().map(Packet::timestamp));
        if let Some(next) = busy.chain(arrivals).min() {
            cx.set_timer(0, next);
        }
        Turn::Sleep
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}

impl Lifecycle for NetLink {
    fn held(&self) -> u64 {
        self.senders.iter().map(|s| s.link.len() as u64).sum()
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        for (i, sender) in self.senders.iter_mut().enumerate() {
            sender.upstream = cx.upstream(i);
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        for p in self.senders.iter_mut().flat_map(|s| s.link.drain(..)) {
            cx.drop(p, Reason::Stopped);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const MS: i64 = 1_000_000;
    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ALL: [u8; 6] = [255; 6];

    fn frame(dst: [u8; 6], length: usize) -> Packet {
        packet(&[&dst[..], &vec![7; length - 6]].concat())
    }

    /// Runs the task up to a time. Returns the frames that arrive: time in milliseconds, output, packet type.
    fn run(kit: &mut Kit<NetLink>, until: i64) -> Vec<(i64, usize, PacketType)> {
        let (mut got, mut now) = (Vec::new(), 0);
        loop {
            let (turn, out) = kit.task();
            if turn == Turn::Again && out.is_empty() {
                (2..5).for_each(|n| kit.with(|_, cx| cx.clear_note(Note::new(n))));
            }
            got.extend(out.iter().map(|(port, p)| (now / MS, *port, p.packet_type())));
            if turn == Turn::Sleep {
                match kit.next_timer() {
                    Some(t) if t / MS <= until => now = t,
                    _ => return got,
                }
                kit.expire();
            }
        }
    }

    #[test]
    fn frames_take_their_time_and_reach_all_other_devices() {
        use PacketType::{Broadcast, Host, OtherHost};
        // Two devices that send and receive, and one that only receives.
        let config =
            "2:0:0:0:0:1, 2:0:0:0:0:2, 2:0:0:0:0:1, 2:0:0:0:0:2, 2:0:0:0:0:3, LATENCY 10ms, BANDWIDTH 1kBps";
        let mut kit = Kit::<NetLink>::with_ports(config, 2, 3).unwrap();
        for p in [frame(B, 100), frame(ALL, 50)] {
            kit.supply(0, p);
        }
        kit.supply(1, frame(A, 20));
        assert_eq!(
            run(&mut kit, 1000),
            [
                (30, 0, Host),
                (30, 2, OtherHost),
                (110, 1, Host),
                (110, 2, OtherHost),
                (160, 1, Broadcast),
                (160, 2, Broadcast)
            ]
        );
        assert_eq!(["sent", "sent_bytes", "received"].map(|h| kit.read(h).unwrap()), ["3", "170", "6"]);
    }

    #[test]
    fn what_arrives_has_no_annotations_of_its_sender() {
        let mut kit = Kit::<NetLink>::with_ports("", 1, 1).unwrap();
        let mut p = packet(b"data");
        p.set_paint(3);
        p.set_packet_type(PacketType::OtherHost);
        kit.supply(0, p);
        let mut out = kit.task().1;
        // The device is free at 32 ns, and the frame arrives 1 ms later.
        for _ in 0..2 {
            kit.with(|_, cx| cx.clear_note(Note::new(2)));
            kit.expire();
            out.extend(kit.task().1);
        }
        let (_, p) = out.first().unwrap();
        assert_eq!((p.data(), p.paint(), p.packet_type()), (&b"data"[..], 0, PacketType::Host));
    }

    #[test]
    fn frames_under_way_are_counted_at_the_end() {
        let mut kit = Kit::<NetLink>::with_ports("", 1, 0).unwrap();
        kit.supply(0, packet(b"data"));
        kit.task();
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 1);
        for (config, error) in [
            ("LATENCY -1", "LATENCY: must not be negative"),
            ("BANDWIDTH 0Bps", "BANDWIDTH: must not be 0"),
            ("1:1:1:1:1:1", "1 addresses for 2 devices"),
        ] {
            assert_eq!(Kit::<NetLink>::with_ports(config, 1, 1).err().unwrap(), [error]);
        }
    }
}
