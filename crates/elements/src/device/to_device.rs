// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToDevice: sends packets through a device.

mod sender;

use super::args::{DeviceName, Method};
use super::back::{self, Ether};
use super::offload::{finish, header_of};
use super::xdp::Users;
use crate::handover::Left;
use castanet_element::error::reason;
use castanet_element::prelude::*;
use castanet_element::{Interest, Watch};
use castanet_io::device::xdp::{Share, XdpOptions, XdpSender};
use castanet_io::device::{self, DeviceError, MAX_BATCH, Outgoing, PacketSender, Refusal, Sent};
use sender::Sender;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Interval at which a device that is down or gone is checked, in nanoseconds.
const LOOK: i64 = 200_000_000;
/// Time after which a device whose queue was full is tried again, in nanoseconds. In this time the device sends a few
/// packets.
const PAUSE: i64 = 100_000;

/// Pulls packets, and sends them through a network device.
///
/// Packets are Ethernet frames, or IP packets if the device has no link header. Packets that are ready are given to
/// the kernel together, and bypass the queueing discipline of the device. Packets that the device does not take yet
/// are kept in order. Meanwhile nothing more is pulled, so queues upstream fill up as they would before a slow link.
/// A device that goes down or vanishes while the router runs is reported once; sending continues when it is back.
/// Packets that can never be sent (longer than the device's MTU allows, for example) are dropped, or leave on output
/// 1.
///
/// With METHOD XDP, packets go through an AF_XDP socket. Those that came from a FromDevice with METHOD XDP are not copied
/// by the router, and not by the kernel either if the driver supports that. Each ToDevice uses one queue of the device.
/// Pending checksums and super-packets are completed first.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push, optional): packets that were sent. Output 1 (push, optional): packets
/// that could not be sent.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 10) -> EtherEncap(0x88b5, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Queue -> ToDevice(lo);
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(makes, holds), ends(Consumed))]
#[class(name = "ToDevice", ports = "1/0-2", processing = "l/h", packets = "any/same", workers = exclusive)]
#[class(build, lifecycle, handlers, task, effects(prints), offload = aware, host(Sends))]
#[class(drops(Consumed, TooLong, SendFailed, BadOffload, NoBuffer))]
#[class(takes_state = "the open socket, the packets that the device has not taken yet")]
// The names that Linux gives to Ethernet devices. Devices with other names may have no Ethernet headers.
#[class(packets_if(
    "DEVNAME eth*|en*|em*|wl*|lo|veth*|br*|bond*|team*|vlan*|macv*|tap*|dummy*",
    "ether/same"
))]
pub struct ToDevice {
    args: Args,
    /// Packets pulled from the input.
    #[count(unit = "pulls")]
    pulls: Count,
    /// Packets sent.
    #[count(unit = "packets")]
    count: Count,
    /// Packets that could not be sent.
    #[count(unit = "packets")]
    drops: Count,
    /// The number of times that the device went down or vanished.
    #[count(unit = "outages")]
    losses: Count,
    sender: Option<(Sender, Watch)>,
    /// With METHOD XDP: the elements of the router that share the packet buffers.
    users: Option<Arc<Users>>,
    /// The watch of the socket, after a hot swap in which the new router has taken over the socket. Only the old router,
    /// which made the watch, can end it.
    left: Left,
    held: Batch,
    upstream: Signal,
    /// The Ethernet address of the device when it was opened.
    ether: Ether,
    lost: bool,
    /// The reason in the last report of a packet that could not be sent; `None` before the first report.
    told: Option<Refusal>,
}

/// Arguments of ToDevice.
#[derive(Args)]
pub struct Args {
    /// The name of the device.
    devname: DeviceName,
    /// Whether every packet that cannot be sent is reported. When false, a packet is reported only if its reason
    /// differs from that of the last report.
    #[arg(keyword, default = false, handler = "rw")]
    debug: bool,
    /// XDP: packets are sent through an AF_XDP socket. PACKET, LINUX or PCAP: through a packet socket, as by default.
    #[arg(keyword)]
    method: Option<Method>,
    /// Accepted for old configurations and ignored; packets that are ready are sent together, up to 64 of them.
    #[arg(keyword, name = "BURST", default = 1, min = 1)]
    _burst: u32,
}

impl Build for ToDevice {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(ToDevice {
            users: Method::is_xdp(args.method.as_ref()).then(|| Users::with_sender(cx)),
            args,
            pulls: Count::default(),
            count: Count::default(),
            drops: Count::default(),
            losses: Count::default(),
            sender: None,
            left: Left::default(),
            held: Batch::new(),
            upstream: Signal::default(),
            ether: None,
            lost: false,
            told: None,
        })
    }
}

impl ToDevice {
    /// Opens the device.
    fn open(&self) -> Result<(Sender, Arc<OwnedFd>), DeviceError> {
        let name = &self.args.devname.0;
        let sender = match &self.users {
            None => Sender::Packet(PacketSender::open(name)?),
            Some(users) => {
                let (share, buffers) = (Share::WHOLE, users.buffers());
                let options = XdpOptions { promiscuous: false, share, buffers, busy_poll: false };
                Sender::Xdp(Box::new(XdpSender::open(name, &options)?))
            }
        };
        let fd = sender.fd()?.clone();
        Ok((sender, fd))
    }

    /// Completes the pending offloads of the packets that were just pulled, the last `n` held ones.
    #[cold]
    fn complete(&mut self, n: usize, cx: &mut Cx<'_>) {
        let held = self.held.as_mut_vec();
        let pulled = held.split_off(held.len().saturating_sub(n));
        for p in pulled {
            let before = self.held.len();
            match finish(p, &mut self.held) {
                // A super-packet becomes several packets.
                Ok(()) => cx.made(self.held.len().saturating_sub(before + 1) as u64),
                Err(reason) => {
                    self.drops.add(1);
                    cx.count_drops(reason, 1);
                }
            }
        }
    }

    /// Sends held packets through the AF_XDP socket, and removes those that were sent.
    fn send_by_xdp(&mut self, cx: &mut Cx<'_>) -> Sent {
        let Some((Sender::Xdp(sender), _)) = &mut self.sender else {
            return Sent { count: 0, refusal: Some(Refusal::Down) };
        };
        if !cx.has_output(0) {
            let sent = sender.send(self.held.as_mut_vec());
            cx.count_drops(Reason::Consumed, sent.count as u64);
            return sent;
        }
        // The sent packets leave on output 0, so the sender gets clones.
        let mut clones: Vec<Packet> =
            self.held.as_mut_vec().iter_mut().take(MAX_BATCH).map_while(Packet::share).collect();
        let all = clones.len();
        let sent = sender.send(&mut clones);
        drop(clones);
        for p in self.held.as_mut_vec().drain(..sent.count.min(all)) {
            cx.emit(0, p);
        }
        let none = all == 0 && sent.refusal.is_none();
        if none { Sent { refusal: Some(Refusal::Congested), ..sent } } else { sent }
    }

    /// Sends held packets through the packet socket, and removes those that were sent.
    fn send_by_socket(&mut self, cx: &mut Cx<'_>) -> Sent {
        let Some((Sender::Packet(sender), _)) = &mut self.sender else {
            return Sent { count: 0, refusal: Some(Refusal::Down) };
        };
        let sent = sender.send(self.held.iter().map(|p| Outgoing { vnet: header_of(p), data: p.data() }));
        for p in self.held.as_mut_vec().drain(..sent.count) {
            cx.emit_or(0, p, Reason::Consumed);
        }
        sent
    }

    /// If the kernel has not taken all packets that were given to it, lets it try again. Returns why it still does not.
    fn flush(&mut self) -> Option<Refusal> {
        let Some((Sender::Xdp(sender), _)) = &mut self.sender else { return None };
        if sender.is_waiting() { sender.send(&mut Vec::new()).refusal } else { None }
    }

    /// Sends the held packets. If the device cannot take some of them now, they stay held, and the reason is returned.
    fn send(&mut self, cx: &mut Cx<'_>) -> Option<Refusal> {
        if self.held.is_empty() {
            return self.flush();
        }
        while !self.held.is_empty() {
            let sent = if self.users.is_some() { self.send_by_xdp(cx) } else { self.send_by_socket(cx) };
            self.count.add(sent.count as u64);
            if cx.has_output(0) {
                // In the ledger, the packets on output 0 are copies of the packets that left through the device.
                cx.made(sent.count as u64);
                cx.left(sent.count as u64);
            }
            match sent.refusal {
                Some(r) if r.is_for_now() => return Some(r),
                Some(r) => self.refuse(r, cx),
                None => {}
            }
        }
        None
    }

    /// Removes the first held packet, which can never be sent: reports it, and emits it on output 1 or drops it.
    #[cold]
    fn refuse(&mut self, refusal: Refusal, cx: &mut Cx<'_>) {
        if self.held.is_empty() {
            return;
        }
        let p = self.held.as_mut_vec().remove(0);
        self.drops.add(1);
        if self.args.debug || self.told != Some(refusal) {
            self.told = Some(refusal);
            let why = match refusal {
                Refusal::Refused(e) => reason(&e.into()),
                _ => "it is longer than the device's MTU allows".into(),
            };
            let name = &self.args.devname.0;
            cx.message(&format!(
                "{}: {name}: a packet of {} bytes cannot be sent: {why}",
                cx.declaration(),
                p.len()
            ));
        }
        let reason = if refusal == Refusal::TooLong { Reason::TooLong } else { Reason::SendFailed };
        cx.emit_or(1, p, reason);
    }

    /// Reports that the device is down or gone.
    #[cold]
    fn lose(&mut self, cx: &mut Cx<'_>) {
        let name = &self.args.devname.0;
        if !std::mem::replace(&mut self.lost, true) {
            self.losses.add(1);
            let what =
                if device::state(name).is_some() { "device is down" } else { "no such device any more" };
            cx.message(&format!(
                "{}: {name}: {what}; packets are sent again when it is back",
                cx.declaration()
            ));
        }
        let now = cx.now();
        cx.set_timer(1, now.saturating_add(LOOK));
    }

    /// Checks whether a lost device is back.
    fn look(&mut self, cx: &mut Cx<'_>) {
        let name = self.args.devname.0.clone();
        let Some((index, true)) = device::state(&name) else { return self.lose(cx) };
        if self.sender.as_ref().is_none_or(|s| s.0.index() != index) {
            let Ok((sender, fd)) = self.open() else { return self.lose(cx) };
            let watch = cx.watch(fd, Interest::Write);
            if let Some((_, old)) = self.sender.replace((sender, watch)) {
                cx.unwatch(old);
            }
        }
        self.lost = false;
        self.ether = back::tell(&name, self.ether, cx);
        cx.schedule();
    }
}

impl Element for ToDevice {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.lost {
            return Turn::Sleep;
        }
        let room = MAX_BATCH.min(cx.limit()).saturating_sub(self.held.len());
        let before = self.held.len();
        if room > 0 {
            cx.pull(0, room, &mut self.held);
        }
        let got = self.held.len().saturating_sub(before);
        self.pulls.add(got as u64);
        if self.users.is_some() && self.held.iter().skip(before).any(|p| p.offload().is_some()) {
            self.complete(got, cx);
        }
        match self.send(cx) {
            None if got > 0 || cx.is_on(&self.upstream) => return Turn::Again,
            None => {}
            Some(Refusal::Full) => {
                if let Some((_, watch)) = &self.sender {
                    cx.wait(*watch);
                }
            }
            Some(Refusal::Down) => self.lose(cx),
            Some(_) => {
                let now = cx.now();
                cx.set_timer(0, now.saturating_add(PAUSE));
            }
        }
        Turn::Sleep
    }

    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        if id == 0 {
            cx.schedule();
        } else if self.lost {
            self.look(cx);
        }
    }
}

#[handlers]
impl ToDevice {
    /// Whether there may be packets upstream.
    #[read]
    fn signal(&self, cx: &mut Cx<'_>) -> bool {
        cx.is_on(&self.upstream)
    }
    /// With METHOD XDP: packets that were copied before they were sent, because they did not come from a device with
    /// METHOD XDP, were cloned or became longer. 0 without METHOD XDP.
    #[read(unit = "packets")]
    fn copied(&self) -> Counted {
        match &self.sender {
            Some((Sender::Xdp(sender), _)) => Counted(sender.copied()),
            _ => Counted(0),
        }
    }
    /// Packets that the device has not taken yet.
    #[read(unit = "packets")]
    fn q(&self) -> usize {
        self.held.len()
    }
}

impl Lifecycle for ToDevice {
    fn held(&self) -> u64 {
        self.held.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        if cx.inherits() {
            return Ok(());
        }
        let (sender, fd) = self.open().map_err(ElementError::refused)?;
        self.ether = back::ether(&self.args.devname.0);
        let watch = cx.watch(fd, Interest::Write);
        self.sender = Some((sender, watch));
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let mut held = std::mem::take(&mut self.held);
        cx.drop_all(&mut held, Reason::Stopped);
        self.sender = None;
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        let method = if self.users.is_some() { " with METHOD XDP" } else { "" };
        Some(format!("device {}{method}", self.args.devname.0))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let Some((sender, watch)) = old.sender.take() else { return Ok(()) };
        old.left.keep(watch);
        self.left.end(cx);
        if let Some((_, mine)) = self.sender.take() {
            cx.unwatch(mine);
        }
        let fd = sender.fd().map_err(ElementError::refused)?.clone();
        let watch = cx.watch(fd, Interest::Write);
        self.sender = Some((sender, watch));
        self.held.append(&mut old.held);
        (self.lost, self.told, self.ether) = (old.lost, old.told, old.ether);
        if self.lost {
            let now = cx.now();
            cx.set_timer(1, now.saturating_add(LOOK));
        }
        cx.schedule();
        Ok(())
    }

    fn effects(&self, _: Effects) -> Effects {
        // Batches of any size give the same messages about the device and about refused packets, so packets may be
        // processed in batches.
        Effects::empty()
    }
}
