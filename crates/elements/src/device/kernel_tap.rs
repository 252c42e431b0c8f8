// SPDX-License-Identifier: MIT OR Apache-2.0
//! KernelTap: an Ethernet device of the host, with the router at its other end.

use super::kernel_device::KernelDevice;
use castanet_element::prelude::*;

/// Creates a TAP device: an Ethernet device of the host, with the router at its other end.
///
/// The host gets ADDR as its address on the device, and a route to the network of ADDR through the device. Packets
/// that the host sends through the device leave this element, with the current time as timestamp. The host receives
/// the packets that enter this element. A device that is removed while the router runs is created again. With TAP
/// false this is KernelTun.
///
/// # Ports
/// Input 0 (push or pull, optional): packets for the host. Output 0 (push): packets of the host. Output 1 (push,
/// optional): packets of a TUN device that hold no IP; without output 1 they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 10) -> EtherEncap(0x88b5, 2:2:2:2:2:2, ff:ff:ff:ff:ff:ff)
///     -> KernelTap(10.77.0.1/24) -> Discard;
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters), ends(Consumed))]
#[class(
    name = "KernelTap",
    ports = "0-1/1-2",
    processing = "a/h",
    flow = "x/y",
    packets = "ether/ether unmarked, any"
)]
#[class(workers = exclusive, task, effects(prints), takes_state = "the open device")]
#[class(offload = aware, capabilities(Offloads), host(Creates))]
#[class(drops(Consumed, NotIp, TooShort, TooLong, QueueFull, SendFailed, BadOffload, NoBuffer))]
#[class(packets_if("TAP false|*$*", "any/any"))]
pub struct KernelTap {
    #[engine(element)]
    device: KernelDevice<true>,
}
