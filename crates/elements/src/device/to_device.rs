// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToDevice: sends packets through a device.

pub(super) mod outbox;
mod sender;

use super::args::{DeviceName, Method};
use super::come_up::send;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_io::device::MAX_BATCH;
use outbox::{Outbox, Rest};

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
#[class(kernel)]
pub struct ToDevice {
    args: Args,
    /// Packets pulled from the input.
    #[count(unit = "pulls")]
    pulls: Count,
    #[counts]
    out: Outbox,
    /// Packets taken from upstream. Unlike `pulls`, it does not count those that were sent in the kernel.
    taken: u64,
    upstream: Signal,
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
        let out = Outbox::new(args.devname.0.clone(), Method::is_xdp(args.method.as_ref()), cx);
        Ok(ToDevice { args, pulls: Count::default(), taken: 0, out, upstream: Signal::default() })
    }
}

impl Element for ToDevice {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let out = &mut self.out;
        if out.is_lost() {
            return Turn::Sleep;
        }
        let before = out.held.len();
        let room = MAX_BATCH.min(cx.limit()).saturating_sub(before);
        if room > 0 {
            cx.pull(0, room, &mut out.held);
        }
        let got = out.held.len().saturating_sub(before);
        self.pulls.add(got as u64);
        self.taken += got as u64;
        if out.is_xdp() && out.held.iter().skip(before).any(|p| p.offload().is_some()) {
            out.complete(got, cx);
        }
        match out.send(self.args.debug, cx) {
            Rest::Nothing if got > 0 || cx.is_on(&self.upstream) => Turn::Again,
            _ => Turn::Sleep,
        }
    }

    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        self.out.timer(id, cx);
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
        Counted(self.out.copied())
    }
    /// Packets that the device has not taken yet.
    #[read(unit = "packets")]
    fn q(&self) -> usize {
        self.out.held.len()
    }
}

impl Lifecycle for ToDevice {
    fn held(&self) -> u64 {
        self.out.held.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        if cx.inherits() { Ok(()) } else { self.out.initialise(cx) }
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.out.cleanup(cx);
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        Some(self.out.holds())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.out.take_over(&mut old.out, cx)
    }

    fn effects(&self, _: Effects) -> Effects {
        // Batches of any size give the same messages about the device and about refused packets, so packets may be
        // processed in batches.
        Effects::empty()
    }
}

impl InKernel for ToDevice {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if !self.out.is_xdp() {
            return Err("it has no METHOD XDP".into());
        }
        send(code, &self.args.devname.0)
    }
    fn finished(&self) -> u64 {
        self.taken - self.held()
    }
}
