// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToDPDKDevice: sends through a device as FastClick does through a port of DPDK.

use super::dpdk::{Ignored, Port, Tuning, find, given, tell};
use super::to_device::outbox::Outbox;
use castanet_element::prelude::*;

/// How often a full queue is tried again with BLOCKING before a packet is dropped.
const ATTEMPTS: usize = 1000;

/// Sends packets through a device, as FastClick does with DPDK.
///
/// There is no DPDK here: PORT and the way in which packets are sent are chosen as FromDPDKDevice does. Packets wait in a
/// queue until the device takes them. A packet that finds IQUEUE packets there is dropped, or with BLOCKING only if the
/// device still takes none after some attempts. Arguments that adjust DPDK are accepted and ignored.
///
/// # Ports
/// Input 0 (push): Ethernet frames.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 10) -> EtherEncap(0x88b5, 1:1:1:1:1:1, 2:2:2:2:2:2)
///     -> ToDPDKDevice(dpdk0, ALLOW_NONEXISTENT true);
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(makes, holds), ends(Consumed))]
#[class(name = "ToDPDKDevice", ports = "1/0", processing = "h/h", packets = "ether/", workers = exclusive)]
#[class(build, lifecycle, handlers, task, effects(prints), offload = aware, host(Sends))]
#[class(drops(Consumed, TooLong, SendFailed, BadOffload, NoBuffer, QueueFull, Inactive, Stopped))]
#[class(takes_state = "the open socket, the packets that the device has not taken yet")]
pub struct ToDpdkDevice {
    args: Args,
    port: Option<Port>,
    /// Packets that found a full queue.
    #[count(name = "overflows", unit = "packets")]
    overflows: Count,
    #[counts]
    out: Outbox,
}

/// Arguments of ToDPDKDevice.
#[derive(Args)]
pub struct Args {
    /// The device: its name, bus address or number.
    port: String,
    /// Accepted and ignored: the number of the queue.
    #[arg(name = "QUEUE")]
    _queue: Option<Ignored>,
    /// The number of packets that may wait for the device.
    #[arg(keyword, default = 1024, min = 1, handler = "r")]
    iqueue: usize,
    /// Whether the device is tried again before a packet is dropped because the queue is full.
    #[arg(keyword, default = false)]
    blocking: bool,
    /// Whether packets are sent. While they are not, they are dropped.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// Whether a missing device is no error. All packets are dropped then.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// Accepted and ignored: the segment size that the device makes.
    #[arg(keyword)]
    tso: Option<Ignored>,
    /// Accepted and ignored: how long packets may wait for more; they never do.
    #[arg(keyword, name = "TIMEOUT")]
    _timeout: Option<Ignored>,
    /// Accepted and ignored: whether queues are allocated.
    #[arg(keyword, name = "ALLOC")]
    _alloc: Option<Ignored>,
    #[arg(flatten)]
    _tuning: Tuning,
}

impl Build for ToDpdkDevice {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let port = find(&args.port, args.allow_nonexistent)?;
        let (device, xdp) = port.as_ref().map_or((String::new(), false), |p| (p.device.clone(), p.way.xdp));
        let out = Outbox::new(device, xdp, cx);
        Ok(ToDpdkDevice { args, port, overflows: Count::default(), out })
    }
}

impl ToDpdkDevice {
    fn is_full(&self) -> bool {
        self.out.held.len() >= self.args.iqueue
    }

    /// Puts a packet into the queue, or drops it if the queue is full.
    fn take(&mut self, p: Packet, cx: &mut Cx<'_>) {
        if self.is_full() && self.args.blocking {
            for _ in 0..ATTEMPTS {
                if self.out.is_lost() || !self.is_full() {
                    break;
                }
                self.out.send(false, cx);
            }
        }
        if self.is_full() {
            self.overflows.add(1);
            return cx.drop(p, Reason::QueueFull);
        }
        let pending = p.offload().is_some();
        self.out.held.push(p);
        if pending && self.out.is_xdp() {
            self.out.complete(1, cx);
        }
    }
}

impl Element for ToDpdkDevice {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.port.is_none() || !self.args.active {
            return cx.drop_all(batch, Reason::Inactive);
        }
        for p in batch.as_mut_vec().drain(..) {
            self.take(p, cx);
        }
        cx.schedule();
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if !self.out.is_lost() && !self.out.held.is_empty() {
            self.out.send(false, cx);
        }
        Turn::Sleep
    }

    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        self.out.timer(id, cx);
    }
}

impl Lifecycle for ToDpdkDevice {
    fn held(&self) -> u64 {
        self.out.held.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        tell(&self.args.port, self.port.as_ref(), &given(&[("TSO", &self.args.tso)]), cx);
        if self.port.is_none() || cx.inherits() { Ok(()) } else { self.out.initialise(cx) }
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.out.cleanup(cx);
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        self.port.as_ref().map(|_| self.out.holds())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.out.take_over(&mut old.out, cx)
    }
    fn effects(&self, _: Effects) -> Effects {
        // As for ToDevice.
        Effects::empty()
    }
}

#[handlers]
impl ToDpdkDevice {
    /// Packets that were dropped: they found a full queue, or could not be sent.
    #[read(unit = "packets")]
    fn dropped(&self) -> Counted {
        Counted(self.overflows.get().saturating_add(self.out.drops.get()))
    }
    /// The name of the device.
    #[read]
    fn device(&self) -> String {
        self.out.device.clone()
    }
    /// How packets are sent: `packet socket` or `xdp`.
    #[read]
    fn way(&self) -> &'static str {
        if self.port.is_some() { self.out.way() } else { "" }
    }
    /// Packets that the device has not taken yet.
    #[read(unit = "packets")]
    fn q(&self) -> usize {
        self.out.held.len()
    }
    /// Packets that the device has sent since it was created.
    #[read(unit = "packets")]
    fn hw_count(&self) -> Counted {
        Counted(castanet_io::device::info(&self.out.device).map_or(0, |i| i.statistics.tx_packets))
    }
    /// Bytes that the device has sent since it was created.
    #[read(unit = "bytes")]
    fn hw_bytes(&self) -> Counted {
        Counted(castanet_io::device::info(&self.out.device).map_or(0, |i| i.statistics.tx_bytes))
    }
    /// Sets the counts of packets to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.overflows.reset();
        self.out.count.reset();
        self.out.drops.reset();
    }
}
