// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDPDKDevice: receives from a device as FastClick does from a port of DPDK.

use super::dpdk::{Ignored, Port, Tuning, find, given, tell};
use super::from_device::{self, FromDevice};
use castanet_element::prelude::*;
use castanet_io::device::{DeviceInfo, info};

/// The first number of the groups of elements that share a port.
const GROUPS: u16 = 0xd000;

/// Emits the frames that a device receives, and takes them from the host, as FastClick does with DPDK.
///
/// There is no DPDK here: the device stays with its kernel driver, and needs no preparation. PORT is the name of a device,
/// the bus address of its hardware, such as `0000:03:00.0` or `03:00.0`, or a number: hardware devices are numbered from 0
/// on in the order of their addresses. Frames come by METHOD XDP of FromDevice if the driver runs XDP programs, this process
/// may load them, and no checksum or segmentation can be lost that way; otherwise through a packet socket, with the frames
/// hidden from the host. A message says which way is used, and why not the faster one. `castanet devices` shows it too.
///
/// Elements with the same PORT and with QUEUE share the frames: all frames of a flow go to the same element. Elements
/// of several workers use that. Arguments that adjust DPDK are accepted and ignored; a message lists those that would have
/// changed frames.
///
/// # Ports
/// No inputs. Output 0 (push): frames.
///
/// # Example
/// ```click
/// FromDPDKDevice(dpdk0, ALLOW_NONEXISTENT true) -> Queue -> Discard;
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters, holds))]
#[class(
    name = "FromDPDKDevice",
    ports = "0/1",
    processing = "h/h",
    packets = "/ether unmarked",
    alignment = "network 4"
)]
#[class(workers = exclusive, build, lifecycle, handlers, task, effects(prints), offload = aware, capabilities(Offloads))]
#[class(host(Receives))]
#[class(drops(BadOffload, Truncated, TooLong, NoBuffer, Stopped))]
#[class(takes_state = "the open socket with the frames that wait")]
pub struct FromDpdkDevice {
    args: Args,
    port: Option<Port>,
    from: Option<FromDevice>,
}

/// Arguments of FromDPDKDevice.
#[derive(Args)]
pub struct Args {
    /// The device: its name, bus address or number.
    port: String,
    /// Whether frames to other hosts are received.
    #[arg(default = true)]
    promisc: bool,
    /// Accepted and ignored: whether the device filters frames by VLAN.
    vlan_filter: Option<Ignored>,
    /// Accepted and ignored: whether the device strips VLAN tags; they stay.
    vlan_strip: Option<Ignored>,
    /// Accepted and ignored: whether the device knows two VLAN tags.
    vlan_extend: Option<Ignored>,
    /// Accepted and ignored: whether the device joins frames.
    lro: Option<Ignored>,
    /// Accepted and ignored: whether long frames are received; they always are.
    #[arg(name = "JUMBO")]
    _jumbo: Option<Ignored>,
    /// The number of the element among those that share the port; below 0 if it has the port for itself.
    #[arg(default = -1)]
    queue: i32,
    /// Whether packets get the time of reception as timestamp.
    #[arg(keyword, default = false)]
    timestamp: bool,
    /// Whether frames are emitted. While they are not, they wait in the kernel.
    #[arg(keyword, default = true, handler = "rwc")]
    active: bool,
    /// Whether a missing device is no error. No packet comes from it then.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// Accepted and ignored: the Ethernet address to give to the device.
    #[arg(keyword)]
    mac: Option<Ignored>,
    /// Accepted and ignored: the MTU to give to the device.
    #[arg(keyword)]
    mtu: Option<Ignored>,
    /// Accepted and ignored: how frames are divided among queues.
    #[arg(keyword)]
    mode: Option<Ignored>,
    /// Accepted and ignored: whether only frames of flow rules are received.
    #[arg(keyword)]
    flow_isolate: Option<Ignored>,
    /// Accepted and ignored: a file with flow rules.
    #[arg(keyword)]
    flow_rules_file: Option<Ignored>,
    /// Accepted and ignored: the number of virtual functions.
    #[arg(keyword)]
    vf_pools: Option<Ignored>,
    /// Accepted and ignored: the VLANs of virtual functions.
    #[arg(keyword)]
    vf_vlan: Option<Ignored>,
    /// Accepted and ignored: whether the hash of a flow is stored as aggregate annotation.
    #[arg(keyword)]
    rss_aggregate: Option<Ignored>,
    /// Accepted and ignored: whether the number of the queue is stored as paint.
    #[arg(keyword)]
    paint_queue: Option<Ignored>,
    /// Accepted and ignored: the minimum number of queues.
    #[arg(keyword, name = "MINQUEUES")]
    _minqueues: Option<Ignored>,
    /// Accepted and ignored: the queue with interrupts.
    #[arg(keyword, name = "RX_INTR")]
    _rx_intr: Option<Ignored>,
    /// Accepted and ignored: the number of queues for flows.
    #[arg(keyword, name = "MAX_RSS")]
    _max_rss: Option<Ignored>,
    /// Accepted and ignored: the size of the table of queues.
    #[arg(keyword, name = "RETA_SIZE")]
    _reta_size: Option<Ignored>,
    /// Accepted and ignored: whether flow rules are removed at the end.
    #[arg(keyword, name = "CLEAR")]
    _clear: Option<Ignored>,
    /// Accepted and ignored: flow control.
    #[arg(keyword, name = "PAUSE")]
    _pause: Option<Ignored>,
    /// Accepted and ignored: power management.
    #[arg(keyword, name = "POWER_MGMT")]
    _power_mgmt: Option<Ignored>,
    /// Accepted and ignored: whether queues are divided by processor socket.
    #[arg(keyword, name = "NUMA")]
    _numa: Option<Ignored>,
    /// Accepted and ignored: the processor socket.
    #[arg(keyword, name = "NUMA_NODE")]
    _numa_node: Option<Ignored>,
    /// Accepted and ignored: how queues are divided among threads.
    #[arg(keyword, name = "SCALE")]
    _scale: Option<Ignored>,
    /// Accepted and ignored: the first thread.
    #[arg(keyword, name = "THREADOFFSET")]
    _threadoffset: Option<Ignored>,
    #[arg(flatten)]
    _tuning: Tuning,
}

impl Args {
    /// The names of the given arguments that would have changed frames.
    fn ignored(&self) -> Vec<&'static str> {
        given(&[
            ("VLAN_FILTER", &self.vlan_filter),
            ("VLAN_STRIP", &self.vlan_strip),
            ("VLAN_EXTEND", &self.vlan_extend),
            ("LRO", &self.lro),
            ("MAC", &self.mac),
            ("MTU", &self.mtu),
            ("MODE", &self.mode),
            ("FLOW_ISOLATE", &self.flow_isolate),
            ("FLOW_RULES_FILE", &self.flow_rules_file),
            ("VF_POOLS", &self.vf_pools),
            ("VF_VLAN", &self.vf_vlan),
            ("RSS_AGGREGATE", &self.rss_aggregate),
            ("PAINT_QUEUE", &self.paint_queue),
        ])
    }
}

impl Build for FromDpdkDevice {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let port = find(&args.port, args.allow_nonexistent)?;
        let from = match &port {
            None => None,
            Some(p) => {
                let group = (args.queue >= 0).then_some(GROUPS | (p.index & 0xfff) as u16);
                let of =
                    from_device::Args::of_port(&p.device, p.way.xdp, args.promisc, group, args.timestamp);
                Some(FromDevice::build(of, cx)?)
            }
        };
        Ok(FromDpdkDevice { args, port, from })
    }
}

impl FromDpdkDevice {
    fn info(&self) -> Option<DeviceInfo> {
        info(&self.port.as_ref()?.device).ok()
    }
}

impl Element for FromDpdkDevice {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        match &mut self.from {
            Some(from) if self.args.active => from.task(cx),
            _ => Turn::Sleep,
        }
    }
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        if let Some(from) = &mut self.from {
            from.timer(id, cx);
        }
    }
}

impl Lifecycle for FromDpdkDevice {
    fn held(&self) -> u64 {
        self.from.as_ref().map_or(0, Lifecycle::held)
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        tell(&self.args.port, self.port.as_ref(), &self.args.ignored(), cx);
        self.from.as_mut().map_or(Ok(()), |from| from.initialise(cx))
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.from.as_mut().map_or(Ok(()), |from| from.cleanup(cx))
    }
    fn holds(&self) -> Option<String> {
        self.from.as_ref().and_then(Lifecycle::holds)
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match (&mut self.from, &mut old.from) {
            (Some(new), Some(old)) => new.take_over(old, cx),
            _ => Ok(()),
        }
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match (&mut self.from, &mut old.from) {
            (Some(new), Some(old)) => new.take_state(old, cx),
            _ => Ok(()),
        }
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.args.active {
            cx.schedule();
        }
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        // As for FromDevice.
        Effects::empty()
    }
}

#[handlers]
impl FromDpdkDevice {
    /// Packets emitted.
    #[read(unit = "packets")]
    fn count(&self) -> Counted {
        Counted(self.from.as_ref().map_or(0, FromDevice::emitted))
    }
    /// Frames that the kernel dropped because the router did not read them in time.
    #[read(unit = "packets")]
    fn kernel_drops(&mut self) -> Counted {
        self.from.as_mut().map_or(Counted(0), FromDevice::kernel_drops)
    }
    /// The name of the device.
    #[read]
    fn device(&self) -> String {
        self.port.as_ref().map_or(String::new(), |p| p.device.clone())
    }
    /// How frames are received, as in the handler `way` of FromDevice.
    #[read]
    fn way(&self) -> String {
        self.from.as_ref().map_or(String::new(), FromDevice::way)
    }
    /// The Ethernet address of the device, with colons.
    #[read]
    fn mac(&self) -> String {
        let ether = self.info().and_then(|i| i.ether);
        ether.map_or(String::new(), |e| e.map(|byte| format!("{byte:02x}")).join(":"))
    }
    /// The name of the device's driver.
    #[read]
    fn driver(&self) -> String {
        self.port.as_ref().and_then(|p| castanet_io::device::driver(&p.device)).unwrap_or_default()
    }
    /// Whether the device is up and has a carrier.
    #[read]
    fn carrier(&self) -> bool {
        self.info().is_some_and(|i| i.running)
    }
    /// The MTU of the device in bytes.
    #[read(unit = "bytes")]
    fn mtu(&self) -> u32 {
        self.info().map_or(0, |i| i.mtu)
    }
    /// The number of receive queues of the device that are in use.
    #[read]
    fn nb_rx_queues(&self) -> u32 {
        self.port.as_ref().map_or(0, |p| castanet_io::device::receive_queues(&p.device))
    }
    /// Packets that the device has received since it was created.
    #[read(unit = "packets")]
    fn hw_count(&self) -> Counted {
        Counted(self.info().map_or(0, |i| i.statistics.rx_packets))
    }
    /// Bytes that the device has received since it was created.
    #[read(unit = "bytes")]
    fn hw_bytes(&self) -> Counted {
        Counted(self.info().map_or(0, |i| i.statistics.rx_bytes))
    }
    /// Received packets that the device has dropped since it was created.
    #[read(unit = "packets")]
    fn hw_dropped(&self) -> Counted {
        Counted(self.info().map_or(0, |i| i.statistics.rx_dropped))
    }
    /// Sets `count` to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        if let Some(from) = &mut self.from {
            from.reset_emitted();
        }
    }
}
