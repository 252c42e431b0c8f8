// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of KernelTap and KernelTun: a device of the host, with the router at its other end.

use super::args::DeviceName;
use super::claims::claim;
use super::tap::{Read, Wanted, read, write};
use crate::handover::Left;
use castanet_element::prelude::*;
use castanet_element::{Interest, Watch};
use castanet_io::device::{self, DeviceError, Tun};
use castanet_packet::{DEFAULT_HEADROOM, MAX_HEADROOM};
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

/// The maximum number of packets that one turn emits. Packets that are ready are emitted together, whatever
/// BURST says.
const MOST: usize = 64;
/// Interval at which a device that is down or gone is checked, in nanoseconds.
const LOOK: i64 = 200_000_000;

/// Arguments of KernelTap and KernelTun.
#[derive(Args)]
pub struct Args {
    /// The host's address on the device, and the network that the host reaches through the device.
    addr: Prefix,
    /// The gateway of the host's default route, if that route is to lead through the device.
    gateway: Option<Ipv4Addr>,
    /// Whether packets are Ethernet frames (TAP) or IP packets (TUN); by default as the class name says.
    #[arg(keyword)]
    tap: Option<bool>,
    /// Bytes before the data of each packet.
    #[arg(keyword, default = DEFAULT_HEADROOM as u32, show = "28", max = MAX_HEADROOM)]
    headroom: u32,
    /// Accepted for old configurations and ignored; packets that are ready are emitted together, up to 64 of them.
    #[arg(keyword, name = "BURST", default = 1, min = 1)]
    _burst: u32,
    /// The host's Ethernet address on the device; for TAP devices only.
    #[arg(keyword)]
    ether: Option<EtherAddr>,
    /// Whether to suppress the message that is printed when the host does not accept packets.
    #[arg(keyword, default = false)]
    ignore_queue_overflows: bool,
    /// The maximum length of a packet in bytes, without the Ethernet header.
    #[arg(keyword, default = 1500, min = 68, max = 65_000)]
    mtu: u32,
    /// The name of the device; by default `tap` or `tun` with the first free number.
    #[arg(keyword, deprecated = "DEV_NAME")]
    devname: Option<DeviceName>,
}

/// The router's end of a device of the host. The const parameter `TAP` is the default of the argument TAP.
#[derive(Counts)]
pub struct KernelDevice<const TAP: bool> {
    args: Args,
    wanted: Wanted,
    tun: Option<(Tun, Watch)>,
    /// Identifies the device in a hot swap: its name and kind, or all its settings if the kernel chooses the name.
    key: String,
    /// The watch of a device that this element has handed to another router in a hot swap. Only the router of this
    /// element can end the watch.
    left: Left,
    /// Packets that came from the host.
    #[count(unit = "packets")]
    packets: Count,
    /// The number of times the device was checked for packets. Each turn checks it once.
    #[count(name = "selected_calls", unit = "calls")]
    calls: Count,
    lost: bool,
    /// Whether the message that the host does not accept packets has been printed.
    reported: bool,
    pulls: bool,
    upstream: Signal,
    scratch: Vec<u8>,
}

impl<const TAP: bool> Engine for KernelDevice<TAP> {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if let Some(name) = &args.devname {
            claim(&format!("host device '{}'", name.0), cx)?;
        }
        let tap = args.tap.unwrap_or(TAP);
        let free = if tap { "tap%d" } else { "tun%d" };
        let wanted = Wanted {
            name: Some(args.devname.as_ref().map_or(free, |n| &n.0).to_string()),
            tap,
            ip: Some((args.addr.addr, args.addr.len)),
            gateway: args.gateway,
            ether: args.ether.map(|e| e.0),
            mtu: args.mtu,
        };
        let pulls = cx.inputs > 0 && !cx.is_push_input(0);
        Ok(KernelDevice {
            args,
            key: wanted.key(),
            wanted,
            tun: None,
            left: Left::default(),
            packets: Count::default(),
            calls: Count::default(),
            lost: false,
            reported: false,
            pulls,
            upstream: Signal::default(),
            scratch: Vec::new(),
        })
    }
    fn args(&mut self) -> &mut Args {
        &mut self.args
    }
}

impl<const TAP: bool> KernelDevice<TAP> {
    fn name(&self) -> String {
        self.tun.as_ref().map_or(String::new(), |t| t.0.name().to_string())
    }

    /// Reports that the device was removed or is down, and sets the timer for the next check.
    #[cold]
    fn lose(&mut self, error: &DeviceError, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.lost, true) {
            let text = error.to_string();
            let what = text.lines().next().unwrap_or("");
            cx.message(&format!("{}: {what}; it is made again", cx.declaration()));
        }
        let now = cx.now();
        cx.set_timer(0, now.saturating_add(LOOK));
    }
}

#[handlers]
impl<const TAP: bool> KernelDevice<TAP> {
    /// The name of the device.
    #[read]
    fn dev_name(&self) -> String {
        self.name()
    }
}

impl<const TAP: bool> Element for KernelDevice<TAP> {
    /// Sends packets to the host.
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let result = match &self.tun {
                Some((tun, _)) => write(tun, self.wanted.start(), &p),
                None => Err(Reason::SendFailed),
            };
            let reason = match result {
                Ok(()) => Reason::Consumed,
                Err(reason) => {
                    if !self.args.ignore_queue_overflows && !std::mem::replace(&mut self.reported, true) {
                        let name = self.name();
                        cx.message(&format!(
                            "{}: {name}: the host does not take packets: {reason}",
                            cx.declaration()
                        ));
                    }
                    reason
                }
            };
            cx.drop(p, reason);
        }
    }
    /// Runs one turn: sends packets to the host, and emits packets from it.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.lost {
            return Turn::Sleep;
        }
        let most = MOST.min(cx.limit()).max(1);
        let mut busy = false;
        if self.pulls {
            let mut batch = cx.spare_batch();
            cx.pull(0, most, &mut batch);
            busy = !batch.is_empty() || cx.is_on(&self.upstream);
            self.push(0, &mut batch, cx);
            cx.return_batch(batch);
        }
        self.calls.add(1);
        let now = cx.now();
        for _ in 0..most {
            let Some((tun, watch)) = &self.tun else { return Turn::Sleep };
            let got = read(tun, &self.wanted, self.args.headroom as usize, now, &mut self.scratch);
            cx.entered(got.as_ref().map_or(0, Read::packets));
            match got {
                Ok(Read::Packet(p)) => {
                    self.packets.add(1);
                    cx.emit(0, p);
                }
                Ok(Read::Bad(p)) => cx.emit_or(1, p, Reason::NotIp),
                Ok(Read::Lost(reason)) => {
                    cx.count_drops(reason, 1);
                }
                Ok(Read::None) => {
                    cx.wait(*watch);
                    return if busy { Turn::Again } else { Turn::Sleep };
                }
                Err(e) => {
                    self.lose(&e, cx);
                    return Turn::Sleep;
                }
            }
        }
        Turn::Again
    }
    /// Creates the device again if it was removed.
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let name = self.name();
        if device::state(&name).is_none() {
            let tun = match self.wanted.open() {
                Ok(tun) => tun,
                Err(e) => return self.lose(&e, cx),
            };
            let Some(fd) = tun.queues().first().cloned() else { return };
            let watch = cx.watch(fd, Interest::Read);
            if let Some((_, old)) = self.tun.replace((tun, watch)) {
                cx.unwatch(old);
            }
        }
        (self.lost, self.reported) = (false, false);
        cx.message(&format!("{}: {name}: device is back", cx.declaration()));
        cx.schedule();
    }
}

impl<const TAP: bool> Lifecycle for KernelDevice<TAP> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.pulls {
            self.upstream = cx.upstream(0);
        }
        if cx.inherits() {
            return Ok(());
        }
        let tun = self.wanted.open().map_err(ElementError::refused)?;
        // If the device is created again, it gets this name, even if the configuration left the number to the kernel.
        self.wanted.name = Some(tun.name().to_string());
        let fd = tun.queues().first().cloned().ok_or("no queue")?;
        let watch = cx.watch(fd, Interest::Read);
        self.tun = Some((tun, watch));
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.tun = None;
        Ok(())
    }
    /// Returns the key by which a hot swap finds the device. Several devices without a configured name may have the
    /// same key.
    fn holds(&self) -> Option<String> {
        Some(self.key.clone())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some((tun, _)) = old.tun.as_ref().filter(|_| !old.lost) {
            self.wanted.change(&old.wanted, tun).map_err(ElementError::refused)?;
        }
        let Some((tun, watch)) = old.tun.take() else { return Ok(()) };
        old.left.keep(watch);
        self.left.end(cx);
        if let Some((_, mine)) = self.tun.take() {
            cx.unwatch(mine);
        }
        // An open device has at least one queue.
        if let Some(fd) = tun.queues().first().cloned() {
            let watch = cx.watch(fd, Interest::Read);
            self.wanted.name = Some(tun.name().to_string());
            self.tun = Some((tun, watch));
        }
        (self.lost, self.reported) = (old.lost, old.reported);
        if self.lost {
            let now = cx.now();
            cx.set_timer(0, now.saturating_add(LOOK));
        }
        cx.schedule();
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        // The element prints messages only about the device, never about single packets, so packets may be processed
        // in batches.
        Effects::empty()
    }
}
