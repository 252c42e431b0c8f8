// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of the host, and sockets: where packets enter and leave the router.

mod args;
mod back;
mod claims;
pub mod come_up;
pub mod complete_offload;
mod connectionless;
mod dpdk;
pub mod dpdk_info;
pub mod ensure_dpdk_buffer;
pub mod from_device;
pub mod from_dpdk_device;
pub mod from_host;
mod intake;
mod kernel_device;
pub mod kernel_filter;
pub mod kernel_tap;
pub mod kernel_tun;
pub mod mcast_socket;
pub(crate) mod offload;
pub mod raw_socket;
pub mod socket;
mod socket_pump;
pub mod socket_tables;
mod tap;
pub mod to_device;
pub mod to_dpdk_device;
pub mod to_host;
pub mod to_host_sniffers;
mod xdp;

use castanet_element::{ClassDef, action, element};
use std::error::Error;
use std::sync::Arc;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<complete_offload::CompleteOffload>(),
    element::<dpdk_info::DpdkInfo>(),
    action::<ensure_dpdk_buffer::EnsureDpdkBuffer>(),
    element::<from_device::FromDevice>(),
    element::<from_dpdk_device::FromDpdkDevice>(),
    element::<from_host::FromHost>(),
    element::<kernel_filter::KernelFilter>(),
    element::<kernel_tap::KernelTap>(),
    element::<kernel_tun::KernelTun>(),
    element::<mcast_socket::McastSocket>(),
    element::<raw_socket::RawSocket>(),
    element::<socket::Socket>(),
    element::<to_device::ToDevice>(),
    element::<to_dpdk_device::ToDpdkDevice>(),
    element::<to_host::ToHost>(),
    element::<to_host_sniffers::ToHostSniffers>(),
];

#[cfg(test)]
mod tests;

/// Reads the addresses of the host's devices, for names such as `eth0:ip`.
pub fn addresses() -> castanet_element::spec::names::OfDevices {
    let all = castanet_io::device::all().map_err(|e| Arc::new(e) as Arc<dyn Error + Send + Sync>)?;
    let all = all
        .into_iter()
        .map(|d| {
            let net = d.ip.zip(d.netmask()).map(|((ip, _), mask)| (ip.octets(), mask.octets()));
            let ip = d.ip.map(|(ip, _)| ip.octets());
            let gateway = d.gateway.map(|a| a.octets());
            let addresses = castanet_element::spec::names::Addresses {
                ip,
                net,
                ether: d.ether,
                gateway,
                ..Default::default()
            };
            (d.name, addresses)
        })
        .collect();
    Ok(all)
}
