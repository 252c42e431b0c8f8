// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromHost: emits the frames that the host sends through a device that the router creates.

use super::args::DeviceName;
use super::claims::{ROUTER, claim};
use super::tap::{Read, Wanted, read};
use crate::handover::Left;
use castanet_element::prelude::*;
use castanet_element::{Interest, Watch};
use castanet_io::device::Tun;
use castanet_packet::{DEFAULT_HEADROOM, MAX_HEADROOM};
use castanet_wire::ether::EtherAddr;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The maximum number of packets that one turn emits.
const MOST: usize = 64;
const DEFAULT_MTU: u32 = 2048;

/// A device that a FromHost element creates. ToHost elements with the same device name use it too.
#[derive(Default)]
pub(super) struct HostDevice {
    wanted: OnceLock<Wanted>,
    tun: Mutex<Option<Arc<Tun>>>,
    /// Whether a FromDevice with METHOD XDP takes the frames of a device with this name from the host.
    taken: AtomicBool,
}

impl HostDevice {
    /// Returns the settings of the device, or an error if no FromHost element defines them.
    pub(super) fn check(&self, name: &str) -> Result<&Wanted, ElementError> {
        self.wanted.get().ok_or_else(|| {
            format!(
                "no FromHost element for '{name}', and no FromDevice that takes its frames from the host\n  help: FromHost({name}) \
                 makes the device that ToHost({name}) uses; to give back frames of an existing device, let FromDevice({name}, METHOD XDP) \
                 take them"
            )
            .into()
        })
    }
    /// Notes that an element takes the frames of a device with this name from the host.
    pub(super) fn take_frames(&self) {
        self.taken.store(true, Ordering::Relaxed);
    }
    /// Whether ToHost gives frames back to a device that exists without FromHost.
    pub(super) fn gives_back(&self) -> bool {
        self.wanted.get().is_none() && self.taken.load(Ordering::Relaxed)
    }
    fn tun(&self) -> MutexGuard<'_, Option<Arc<Tun>>> {
        self.tun.lock()
    }
    /// Creates and opens the device.
    fn open(&self, name: &str) -> Result<Arc<Tun>, ElementError> {
        let made = Arc::new(self.check(name)?.open().map_err(ElementError::refused)?);
        Ok(self.tun().insert(made).clone())
    }
    /// Returns the device if FromHost has opened or inherited it.
    pub(super) fn get(&self) -> Option<Arc<Tun>> {
        self.tun().clone()
    }
    /// Takes over the open device of the old router; `None` if that router has no open device.
    fn take(&self, old: &HostDevice) -> Option<Arc<Tun>> {
        let tun = old.tun().take()?;
        Some(self.tun().insert(tun).clone())
    }
}

/// The host devices of a router, by name.
#[derive(Default)]
pub(super) struct HostDevices(Mutex<HashMap<String, Arc<HostDevice>>>);

impl HostDevices {
    /// Returns the host device with this name, and adds it if there is none. It may not be open yet.
    pub(super) fn get(name: &str, cx: &mut BuildCx<'_>) -> Arc<HostDevice> {
        let all = cx.share_as(ROUTER, HostDevices::default);
        let mut all = all.0.lock();
        all.entry(name.to_string()).or_default().clone()
    }
}

/// Creates an Ethernet device on the host, and emits the frames that the host sends through it.
///
/// With DST, the device gets the address of DST, and the host gets a route to the network of DST. The MAC header of
/// frames is marked, and their timestamp is the current time. While a queue downstream is full, nothing is read.
/// ToHost with the same device name sends frames to the host.
///
/// # Ports
/// No inputs. Output 0 (push): Ethernet frames of the host.
///
/// # Example
/// ```click
/// FromHost(fake0, 10.79.0.1/24) -> Discard;
/// InfiniteSource(LENGTH 60, LIMIT 10) -> EtherEncap(0x88b5, 2:2:2:2:2:2, ff:ff:ff:ff:ff:ff) -> ToHost(fake0);
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(
    name = "FromHost",
    aliases("FromLinux"),
    ports = "0/1",
    processing = "h/h",
    packets = "/ether unmarked"
)]
#[class(takes_state = "the open device")]
#[class(workers = exclusive, build, lifecycle, handlers, task, effects(prints), drops(TooLong, BadOffload, NoBuffer))]
#[class(offload = aware, capabilities(Offloads), host(Creates))]
pub struct FromHost {
    args: Args,
    device: Arc<HostDevice>,
    wanted: Wanted,
    tun: Option<(Arc<Tun>, Watch)>,
    /// The watch of the device, after another router has taken over the device in a hot swap. Only the router of this
    /// element can end this watch.
    left: Left,
    downstream: Signal,
    scratch: Vec<u8>,
    /// Frames that came from the host.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of FromHost.
#[derive(Args)]
pub struct Args {
    /// The name of the device to create.
    devname: DeviceName,
    /// The host's address on the device, and the network that the host reaches through the device.
    dst: Option<Prefix>,
    /// The gateway of the host's default route, if that route is to lead through the device.
    #[arg(keyword)]
    gateway: Option<Ipv4Addr>,
    /// The host's Ethernet address on the device.
    #[arg(keyword)]
    ether: Option<EtherAddr>,
    /// Bytes before the data of each packet.
    #[arg(keyword, default = DEFAULT_HEADROOM as u32, show = "28", max = MAX_HEADROOM)]
    headroom: u32,
    /// The maximum length of a packet in bytes, without the Ethernet header.
    #[arg(keyword, default = DEFAULT_MTU, show = "2048", min = 68, max = 65_000)]
    mtu: u32,
}

impl Build for FromHost {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        claim(&format!("host device '{}'", args.devname.0), cx)?;
        let wanted = Wanted {
            name: Some(args.devname.0.clone()),
            tap: true,
            ip: args.dst.map(|d| (d.addr, d.len)),
            gateway: args.gateway,
            ether: args.ether.map(|e| e.0),
            mtu: args.mtu,
        };
        let device = HostDevices::get(&args.devname.0, cx);
        // The device was claimed above, so no other element has set its settings.
        let _ = device.wanted.set(wanted.clone());
        Ok(FromHost {
            args,
            device,
            wanted,
            tun: None,
            left: Left::default(),
            downstream: Signal::default(),
            scratch: Vec::new(),
            count: Count::default(),
        })
    }
}

impl Element for FromHost {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let Some((tun, watch)) = &self.tun else { return Turn::Sleep };
        let now = cx.now();
        for _ in 0..MOST.min(cx.limit()).max(1) {
            // If a queue downstream is full, the task sleeps until the notifier reports free space.
            if let Err(turn) = cx.room(&self.downstream, 1, false) {
                return turn;
            }
            let got = read(tun, &self.wanted, self.args.headroom as usize, now, &mut self.scratch);
            cx.entered(got.as_ref().map_or(0, Read::packets));
            match got {
                Ok(Read::Packet(p) | Read::Bad(p)) => {
                    self.count.add(1);
                    cx.emit(0, p);
                }
                Ok(Read::Lost(reason)) => {
                    cx.count_drops(reason, 1);
                }
                Ok(Read::None) => {
                    cx.wait(*watch);
                    return Turn::Sleep;
                }
                Err(e) => {
                    // No new device is created, because ToHost elements still hold the failed one.
                    let text = e.to_string();
                    let what = text.lines().next().unwrap_or("");
                    cx.message(&format!("{}: {what}; nothing more is received", cx.declaration()));
                    return Turn::Sleep;
                }
            }
        }
        Turn::Again
    }
}

#[handlers]
impl FromHost {
    /// The name of the device.
    #[read]
    fn dev_name(&self) -> &str {
        &self.args.devname.0
    }
    /// Whether the queues downstream have free space.
    #[read]
    fn signal(&self, cx: &mut Cx<'_>) -> bool {
        cx.is_on(&self.downstream)
    }
}

impl Lifecycle for FromHost {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.downstream = cx.downstream(0);
        if cx.inherits() {
            return Ok(());
        }
        let tun = self.device.open(&self.args.devname.0)?;
        let fd = tun.queues().first().cloned().ok_or("no queue")?;
        let watch = cx.watch(fd, Interest::Read);
        self.tun = Some((tun, watch));
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.tun = None;
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        Some(self.wanted.key())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(tun) = old.device.get() {
            self.wanted.change(&old.wanted, &tun).map_err(ElementError::refused)?;
        }
        let Some(tun) = self.device.take(&old.device) else { return Ok(()) };
        if let Some((_, watch)) = old.tun.take() {
            old.left.keep(watch);
        }
        self.left.end(cx);
        if let Some((_, mine)) = self.tun.take() {
            cx.unwatch(mine);
        }
        if let Some(fd) = tun.queues().first().cloned() {
            let watch = cx.watch(fd, Interest::Read);
            self.tun = Some((tun, watch));
        }
        cx.schedule();
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}
