// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDevice: emits the frames that a device receives.

mod args;
mod filter;
mod group;
mod handing;
mod handlers;
mod kernel;
mod opening;
mod source;

use super::back::{self, Ether};
use super::claims::{ROUTER, claim, claim_method};
use super::come_up::come_up;
use super::from_host::HostDevices;
use super::intake::{Intake, ipv4_header};
use super::xdp::{Users, remarks};
use crate::handover::Left;
pub use args::Args;
use castanet_element::Interest;
use castanet_element::kernel::handover::{LONGEST, Points};
use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::{self, DeviceError, Instruction, PacketOptions, Shield};
use castanet_spec::anno;
use group::{Members, claimed};
use source::{Open, Source, receive_by_xdp};
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of frames that one turn emits. Frames that are ready are emitted together, whatever
/// BURST says.
const MOST: usize = 64;
/// For each received frame, the number of further polls without success that the task may make before it sleeps. The
/// total is at most [`MOST_LOOKS`]. Polling avoids wake-ups, because a wake-up costs more than the processing of a
/// packet.
const LOOKS: u32 = 8;
/// The maximum number of polls that find no frame before the task sleeps. Together they take some tens of microseconds.
const MOST_LOOKS: u32 = 256;
/// Interval at which a device that is down or gone is checked, in nanoseconds.
const LOOK: i64 = 200_000_000;

/// Emits the frames that a network device receives.
///
/// Frames come through a packet socket or, with METHOD XDP, around the host's network stack. A frame is an Ethernet
/// frame with its VLAN tag, if it has one, or an IP packet if the device has no link header. The MAC header of packets
/// is marked. Their packet type annotation comes from the kernel (to this host, broadcast, multicast, to another host),
/// and their timestamp is the time of reception. Partial checksums and super-packets pass unchanged; CompleteOffload
/// completes them before elements that need packets as they appear on the wire. Frames that are waiting are emitted
/// together. The task sleeps until frames arrive. At a high rate it does not sleep between frames, but polls.
///
/// Unless SNIFFER is false, the host's own network stack also sees the frames, and answers those to its addresses.
/// The kernel discards frames that do not match BPF_FILTER, an expression of tcpdump, before they are copied.
///
/// A device that goes down or vanishes while the router runs is reported once, and used again when it is back. If
/// its Ethernet address has changed, and the configuration takes addresses from the device, the router reads its
/// configuration again. Two FromDevice elements on one device would emit each frame twice. This is an error unless
/// BPF_FILTER or PROTOCOL differs, or FANOUT is given.
///
/// With FANOUT, all elements with the same device and the same number share the device's frames: all frames of a flow,
/// in both directions, go to the same element. So several workers can receive, each with a FromDevice of its own, and
/// the packets of a flow stay in order. All fragments between two addresses count as one flow.
///
/// METHOD XDP is faster. An XDP program passes the frames of the device to AF_XDP sockets, one for each of its receive
/// queues, and packets go from there to a ToDevice with METHOD XDP without being copied. If the driver supports it, the
/// device itself writes to the memory of packets; otherwise the kernel copies frames there. The host gets no frames,
/// except those that ToHost gives back, and SNIFFER has no effect. With FANOUT, the elements share the queues of the
/// device. Only the bytes of frames arrive: partial checksums, super-packets, and VLAN tags beside the bytes are lost, so
/// the other end of a veth pair must not use these offloads. METHOD XDP needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW in
/// the initial user namespace, and Linux 5.9. The timestamp is the time at which the router read the frame.
///
/// # Ports
/// No inputs. Output 0 (push): frames. Output 1 (optional): with FORCE_IP, frames that hold no IPv4; without
/// output 1 they are dropped.
///
/// # Example
/// ```click
/// FromDevice(lo, SNIFFER true) -> Discard;
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters, holds))]
#[class(
    name = "FromDevice",
    aliases("PollDevice"),
    ports = "0/1-2",
    processing = "h/h",
    packets = "/any unmarked, any",
    alignment = "network 4"
)]
#[class(workers = exclusive, build, lifecycle, handlers, task, effects(prints), offload = aware, capabilities(Offloads))]
#[class(host(Receives))]
#[class(drops(NotIp, BadOffload, Truncated, TooLong, NoBuffer, Stopped))]
#[class(takes_state = "the open socket with the frames that wait")]
#[class(packets_if("FORCE_IP true", "/any marked, any"), packets_if("ENCAP ETHER", "/ether unmarked, any"))]
#[class(packets_if("ENCAP *", "/any unmarked, any"))]
// The names that Linux gives to Ethernet devices. Devices with other names may have no Ethernet headers.
#[class(packets_if(
    "DEVNAME eth*|en*|em*|wl*|lo|veth*|br*|bond*|team*|vlan*|macv*|tap*|dummy*",
    "/ether unmarked, any"
))]
#[class(kernel)]
pub struct FromDevice {
    args: Args,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
    /// The number of times that the device went down or vanished.
    #[count(unit = "outages")]
    losses: Count,
    options: PacketOptions,
    open: Option<Open>,
    /// Packets received together, before they are emitted. Empty between turns.
    batch: Batch,
    /// With METHOD XDP: the elements of the router that share the packet buffers.
    users: Option<Arc<Users>>,
    members: Arc<Members>,
    intake: Intake,
    shield: Option<Shield>,
    /// The watches of sockets that another router has taken over in a hot swap. Only the router of this element can end
    /// them.
    left: Left,
    /// Packets that are emitted before newly received frames. They were received during a hot swap, or just before the
    /// device went down or vanished. The first `from_old` of them came from the old router.
    waiting: VecDeque<Packet>,
    from_old: usize,
    /// Whether an element of another router has taken over the packets in `waiting`. If the swap fails, this
    /// element takes them back.
    followed: bool,
    /// The Ethernet address of the device when it was opened.
    ether: Ether,
    /// Whether the device was found down or gone.
    lost: bool,
    /// Whether frames came since the task last slept.
    received: bool,
    /// How many more polls may find no frame before the task sleeps.
    patience: u32,
    /// The number of frames that the kernel dropped at earlier sockets of this element. Those sockets are closed now.
    drops_before: u64,
    /// How many of these and of the open source's are already counted as drops.
    counted_drops: u64,
    link: LinkType,
    /// The points at which packets come up, while a program of the kernel processes the frames first.
    points: Option<Arc<Points>>,
    /// The number of this element in its FANOUT group, from 0; 0 without FANOUT.
    member: usize,
}

impl Build for FromDevice {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        args.check_method()?;
        claim_method(&args.devname.0, args.is_xdp(), cx)?;
        if args.is_xdp() {
            HostDevices::get(&args.devname.0, cx).take_frames();
        }
        // A wrong filter is a configuration error, even if the device does not exist.
        let filter = args.bpf_filter.as_deref().unwrap_or("").trim().to_string();
        filter::compile(&filter, LinkType::ETHERNET, cx.arg_cx())?;
        let use_of = claimed(&args, &filter);
        // Elements of a FANOUT group may use the device at the same time. Each has its own number in the group.
        let members = cx.share_as(ROUTER, Members::default);
        let member = if args.fanout.is_some() { members.next(&use_of, cx.me) } else { 0 };
        if args.fanout.is_none() {
            claim(&use_of, cx)?;
        }
        let options = PacketOptions {
            promiscuous: args.promisc,
            outgoing: args.outbound,
            protocol: args.protocol,
            fanout: args.fanout,
            ..PacketOptions::default()
        };
        Ok(FromDevice {
            count: Count::default(),
            losses: Count::default(),
            options,
            open: None,
            batch: Batch::new(),
            users: args.is_xdp().then(|| Users::with_receiver(cx)),
            members,
            intake: Intake::new(0, LinkType::ETHERNET),
            shield: None,
            left: Left::default(),
            waiting: VecDeque::new(),
            from_old: 0,
            followed: false,
            ether: None,
            lost: false,
            received: false,
            patience: 0,
            drops_before: 0,
            counted_drops: 0,
            link: LinkType::ETHERNET,
            points: None,
            member,
            args,
        })
    }
}

impl FromDevice {
    /// Receives and emits frames of a packet socket. Returns the number of frames; `None` if there is no socket.
    #[inline]
    fn turn_by_socket(&mut self, most: usize, cx: &mut Cx<'_>) -> Option<u32> {
        let mut frames = 0;
        for _ in 0..most {
            let Some(Open { source: Source::Packet(socket), .. }) = &mut self.open else { return None };
            let intake = &mut self.intake;
            let mut packet = None;
            if socket.receive(1, |f| packet = intake.packet(f, cx)) == 0 {
                break;
            }
            frames += 1;
            if let Some(p) = packet {
                self.emit(p, cx);
            }
        }
        if frames > 0 {
            cx.entered(frames.into());
        }
        Some(frames)
    }

    /// Receives and emits frames by XDP. Returns the number of frames; `None` if there is no socket, or the device was lost.
    fn turn_by_xdp(&mut self, most: usize, cx: &mut Cx<'_>) -> Option<u32> {
        let Some(Open { source: Source::Xdp(receiver), .. }) = &mut self.open else { return None };
        // The frames go to this element from its first turn on, or from the start of its program in the kernel on, not before: a
        // router that is prepared for a hot swap must not take them from the router that runs.
        if let Err(e) = receiver.start() {
            self.lose(&e, cx);
            return None;
        }
        let mut batch = std::mem::take(&mut self.batch);
        receiver.set_lead(if self.points.is_some() { LONGEST } else { 0 });
        let frames = receive_by_xdp(receiver, most, &self.intake, cx, |p| batch.push(p));
        if let Some(points) = self.points.clone() {
            if !self.args.timestamp {
                batch.iter_mut().for_each(|p| p.set_timestamp(0));
            }
            come_up(&points, &mut batch, cx);
        }
        for p in batch.as_mut_vec().drain(..) {
            self.emit(p, cx);
        }
        self.batch = batch;
        Some(u32::try_from(frames).unwrap_or(u32::MAX))
    }

    /// The number of packets emitted.
    pub(super) fn emitted(&self) -> u64 {
        self.count.get()
    }

    /// Resets the number of packets emitted to 0.
    pub(super) fn reset_emitted(&mut self) {
        self.count.reset();
    }

    /// Emits a packet.
    #[inline]
    fn emit(&mut self, mut p: Packet, cx: &mut Cx<'_>) {
        if !self.args.timestamp {
            p.set_timestamp(0);
        }
        if let Some(most) = self.args.snaplen {
            self.cut(&mut p, most as usize);
        }
        if self.args.force_ip {
            let Some((at, len)) = ipv4_header(self.intake.start, p.data()) else {
                return cx.emit_or(1, p, Reason::NotIp);
            };
            p.set_network_header(at, len);
            if let Some(h) = p.ip_header() {
                let dst = u32::from_be_bytes([h[16], h[17], h[18], h[19]]);
                p.set_dst_ip(dst);
            }
        }
        self.count.add(1);
        cx.emit(0, p);
    }

    #[cold]
    fn cut(&self, p: &mut Packet, most: usize) {
        let extra = p.len().saturating_sub(most);
        if extra > 0 {
            p.truncate(most);
            p.set_anno_u32(anno::EXTRA_LENGTH, u32::try_from(extra).unwrap_or(u32::MAX));
        }
    }

    /// Called when no frame is waiting: checks whether the device is still there, and lets the task sleep.
    #[cold]
    fn idle(&mut self, cx: &mut Cx<'_>) -> Turn {
        if let Some(Open { source, watches }) = &mut self.open {
            // A socket error also wakes the task, so check the socket if the wake-up brought no frame.
            let fine = std::mem::take(&mut self.received) && !source.has_error();
            match if fine { Ok(()) } else { source.check() } {
                Ok(()) => watches.iter().for_each(|watch| cx.wait(*watch)),
                Err(e) => self.lose(&e, cx),
            }
        }
        Turn::Sleep
    }

    /// Reports that the device is down or gone, and sets the timer for the next check.
    #[cold]
    fn lose(&mut self, error: &DeviceError, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.lost, true) {
            self.losses.add(1);
            let text = error.to_string();
            let what = text.lines().next().unwrap_or("");
            cx.message(&format!("{}: {what}; packets are received again when it is back", cx.declaration()));
        }
        let now = cx.now();
        cx.set_timer(0, now.saturating_add(LOOK));
    }

    /// Checks whether a lost device is back.
    fn look(&mut self, cx: &mut Cx<'_>) {
        let name = self.args.devname.0.clone();
        let (index, up) = match device::state(&name) {
            Some(state) => state,
            None => return self.lose(&DeviceError::Down { name }, cx),
        };
        let same = self.open.as_ref().is_some_and(|o| o.source.index() == index);
        if !same {
            match cx.with_args(|a| self.open(ArgCx { scope: a.scope, names: a.names, origin: a.origin })) {
                Ok(source) => self.replace(source, cx),
                Err(_) => return self.lose(&DeviceError::Down { name }, cx),
            }
        }
        if !up {
            return self.lose(&DeviceError::Down { name }, cx);
        }
        self.lost = false;
        self.ether = back::tell(&self.args.devname.0, self.ether, cx);
        cx.renew_kernel();
        cx.schedule();
    }

    /// The number of frames that the kernel has dropped because they were not read in time.
    fn all_drops(&mut self) -> u64 {
        let now = self.open.as_mut().map_or(0, |o| o.source.drops());
        self.drops_before.saturating_add(now)
    }

    /// Replaces the current socket. Frames that arrived just before the device went down or vanished are emitted first.
    fn replace(&mut self, source: Source, cx: &mut Cx<'_>) {
        if let Some(Open { source: mut old, watches }) = self.open.take() {
            handing::receive(&mut old, &mut self.intake, |_| true, &mut self.waiting, cx);
            self.drops_before = self.drops_before.saturating_add(old.drops());
            watches.into_iter().for_each(|watch| cx.unwatch(watch));
        }
        let watches = source.fds().into_iter().map(|fd| cx.watch(fd, Interest::Read)).collect();
        self.open = Some(Open { source, watches });
    }
}

impl Element for FromDevice {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.lost {
            return Turn::Sleep;
        }
        let most = MOST.min(cx.limit()).max(1);
        if !self.waiting.is_empty() {
            self.emit_waiting(most, cx);
            return Turn::Again;
        }
        let turn =
            if self.users.is_some() { self.turn_by_xdp(most, cx) } else { self.turn_by_socket(most, cx) };
        let Some(frames) = turn else { return Turn::Sleep };
        if frames > 0 {
            self.received = true;
            self.patience = (self.patience + LOOKS * frames).min(MOST_LOOKS);
            return Turn::Again;
        }
        if self.patience > 0 {
            self.patience -= 1;
            return Turn::Again;
        }
        self.idle(cx)
    }

    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        if self.lost {
            self.look(cx);
        }
    }
}

impl Lifecycle for FromDevice {
    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if cx.inherits() {
            return self.check_link();
        }
        let name = self.args.devname.0.clone();
        if self.args.fanout.is_some() && device::state(&name).is_some_and(|(_, up)| !up) {
            // A socket can join a group only while the device is up.
            self.lost = true;
            let now = cx.now();
            cx.set_timer(0, now.saturating_add(LOOK));
            return Ok(());
        }
        let source = cx.with_args(|args| self.open(*args))?;
        if let Source::Xdp(receiver) = &source {
            for remark in remarks(&name, receiver.way(), self.args.sniffer) {
                cx.message(&format!("{}: {name}: {remark}", cx.declaration()));
            }
        }
        let watches = source.fds().into_iter().map(|fd| cx.watch(fd, Interest::Read)).collect();
        // The device may be down. When it comes up, its frames arrive on this same socket.
        self.open = Some(Open { source, watches });
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(Open { mut source, .. }) = self.open.take() {
            self.drops_before = self.drops_before.saturating_add(source.drops());
        }
        match &self.points {
            // A program in the kernel has counted these frames as entered.
            Some(_) => cx.count_drops(Reason::NoBuffer, self.drops_before.saturating_sub(self.counted_drops)),
            None => cx.missed(self.drops_before),
        }
        self.shield = None;
        for p in self.waiting.drain(..) {
            cx.drop(p, Reason::Stopped);
        }
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        let filter = self.args.bpf_filter.as_deref().unwrap_or("").trim();
        Some(format!("{} member {}", claimed(&self.args, filter), self.member))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.inherit(old, cx)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.follow(old, cx);
        Ok(())
    }

    fn effects(&self, _: Effects) -> Effects {
        // The element prints messages only about the device, never about single packets, so packets may be processed
        // in batches.
        Effects::empty()
    }
}

/// Converts filter instructions from the types of the compiler to those of the packet socket.
fn instructions(program: Vec<castanet_classify::bpf::Instruction>) -> Vec<Instruction> {
    program.into_iter().map(|i| Instruction::new(i.code, i.jt, i.jf, i.k)).collect()
}
