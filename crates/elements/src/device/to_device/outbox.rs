// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets on their way to a device: what ToDevice and ToDPDKDevice have in common.

use super::sender::Sender;
use crate::device::back::{self, Ether};
use crate::device::offload::{finish, header_of};
use crate::device::xdp::Users;
use crate::handover::Left;
use castanet_element::error::reason;
use castanet_element::prelude::*;
use castanet_element::{Interest, Watch};
use castanet_io::device::xdp::{Share, XdpOptions, XdpSender};
use castanet_io::device::{self, DeviceError, MAX_BATCH, Outgoing, PacketSender, Refusal, Sent};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Interval at which a device that is down or gone is checked, in nanoseconds.
const LOOK: i64 = 200_000_000;
/// Time after which a device whose queue was full is tried again, in nanoseconds. In this time the device sends a few
/// packets.
const PAUSE: i64 = 100_000;

/// An open device, and the packets that it has not taken yet. Uses the timers 0 and 1 of its element.
#[derive(Counts)]
pub struct Outbox {
    /// The name of the device.
    pub device: String,
    /// Packets sent.
    #[count(unit = "packets")]
    pub count: Count,
    /// Packets that could not be sent.
    #[count(unit = "packets")]
    pub drops: Count,
    /// The number of times that the device went down or vanished.
    #[count(unit = "outages")]
    losses: Count,
    sender: Option<(Sender, Watch)>,
    /// With METHOD XDP: the elements of the router that share the packet buffers.
    users: Option<Arc<Users>>,
    /// The watch of the socket, after a hot swap in which the new router has taken over the socket. Only the old router,
    /// which made the watch, can end it.
    left: Left,
    pub held: Batch,
    /// The Ethernet address of the device when it was opened.
    ether: Ether,
    lost: bool,
    /// The reason in the last report of a packet that could not be sent; `None` before the first report.
    told: Option<Refusal>,
}

/// The result of a send.
pub enum Rest {
    /// All packets were sent.
    Nothing,
    /// Packets are left; a watch or a timer will wake the element.
    Later,
}

impl Outbox {
    /// An outbox for a device that is not open yet. `xdp` says whether packets are sent through an AF_XDP socket.
    pub fn new(device: String, xdp: bool, cx: &mut BuildCx<'_>) -> Outbox {
        Outbox {
            device,
            count: Count::default(),
            drops: Count::default(),
            losses: Count::default(),
            sender: None,
            users: xdp.then(|| Users::with_sender(cx)),
            left: Left::default(),
            held: Batch::new(),
            ether: None,
            lost: false,
            told: None,
        }
    }

    /// Whether the device is down or gone.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether packets are sent through an AF_XDP socket.
    pub fn is_xdp(&self) -> bool {
        self.users.is_some()
    }

    /// How packets are sent: `packet socket` or `xdp`.
    pub fn way(&self) -> &'static str {
        if self.is_xdp() { "xdp" } else { "packet socket" }
    }

    /// The number of packets that were copied before they were sent through an AF_XDP socket.
    pub fn copied(&self) -> u64 {
        match &self.sender {
            Some((Sender::Xdp(sender), _)) => sender.copied(),
            _ => 0,
        }
    }

    /// The text that identifies the use of the device in a hot swap.
    pub fn holds(&self) -> String {
        let method = if self.users.is_some() { " with METHOD XDP" } else { "" };
        format!("device {}{method}", self.device)
    }

    /// Opens the device when the router starts.
    ///
    /// # Errors
    /// When the device cannot be opened.
    pub fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let (sender, fd) = self.open().map_err(ElementError::refused)?;
        self.ether = back::ether(&self.device);
        let watch = cx.watch(fd, Interest::Write);
        self.sender = Some((sender, watch));
        Ok(())
    }

    /// Drops the packets and closes the device.
    pub fn cleanup(&mut self, cx: &mut Cx<'_>) {
        let mut held = std::mem::take(&mut self.held);
        cx.drop_all(&mut held, Reason::Stopped);
        self.sender = None;
    }

    /// Takes the device and the packets of another router's element over.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn take_over(&mut self, old: &mut Outbox, cx: &mut Cx<'_>) -> Result<(), ElementError> {
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

    /// Sends the held packets. If some of them cannot be sent now, sets a watch or a timer for the rest. `debug` says
    /// whether every packet that cannot be sent is reported.
    pub fn send(&mut self, debug: bool, cx: &mut Cx<'_>) -> Rest {
        match self.send_all(debug, cx) {
            None => return Rest::Nothing,
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
        Rest::Later
    }

    /// A timer of the element has expired.
    pub fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        if id == 0 {
            cx.schedule();
        } else if self.lost {
            self.look(cx);
        }
    }

    /// Opens the device.
    fn open(&self) -> Result<(Sender, Arc<OwnedFd>), DeviceError> {
        let name = &self.device;
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
    pub fn complete(&mut self, n: usize, cx: &mut Cx<'_>) {
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
    fn send_all(&mut self, debug: bool, cx: &mut Cx<'_>) -> Option<Refusal> {
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
                Some(r) => self.refuse(r, debug, cx),
                None => {}
            }
        }
        None
    }

    /// Removes the first held packet, which can never be sent: reports it, and emits it on output 1 or drops it.
    #[cold]
    fn refuse(&mut self, refusal: Refusal, debug: bool, cx: &mut Cx<'_>) {
        if self.held.is_empty() {
            return;
        }
        let p = self.held.as_mut_vec().remove(0);
        self.drops.add(1);
        if debug || self.told != Some(refusal) {
            self.told = Some(refusal);
            let why = match refusal {
                Refusal::Refused(e) => reason(&e.into()),
                _ => "it is longer than the device's MTU allows".into(),
            };
            let name = &self.device;
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
        let name = &self.device;
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
        let name = self.device.clone();
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
