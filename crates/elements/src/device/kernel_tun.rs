// SPDX-License-Identifier: MIT OR Apache-2.0
//! KernelTun: a device of the host for IP packets, with the router at its other end.

use super::kernel_device::KernelDevice;
use castanet_element::prelude::*;

/// Creates a TUN device: a device of the host that carries IP packets to and from the router.
///
/// The host gets ADDR as its address on the device, and a route to the network of ADDR through the device. Packets
/// that the host sends through the device leave this element, with the current time as timestamp. The host receives
/// the packets that enter this element. A device that is removed while the router runs is created again. With TAP
/// true this is KernelTap.
///
/// # Ports
/// Input 0 (push or pull, optional): packets for the host. Output 0 (push): packets of the host. Output 1 (push,
/// optional): packets of a TUN device that hold no IP; without output 1 they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 10) -> UDPIPEncap(10.78.0.2, 1, 10.78.0.1, 2)
///     -> KernelTun(10.78.0.1/24) -> Discard;
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters), ends(Consumed))]
#[class(
    name = "KernelTun",
    ports = "0-1/1-2",
    processing = "a/h",
    flow = "x/y",
    packets = "network at 0/network marked, any"
)]
#[class(workers = exclusive, task, effects(prints), takes_state = "the open device")]
#[class(offload = aware, capabilities(Offloads), host(Creates))]
#[class(drops(Consumed, NotIp, TooShort, TooLong, QueueFull, SendFailed, BadOffload, NoBuffer))]
#[class(packets_if("TAP true|*$*", "any/any"))]
pub struct KernelTun {
    #[engine(element)]
    device: KernelDevice<false>,
}
