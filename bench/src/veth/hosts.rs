// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices, addresses and links of the hosts.

use super::KernelTask;
use crate::launch::Launcher;
use crate::process::Process;

/// The Ethernet address of the next hop. No device has it, so the receiver drops packets as early as possible.
pub const NEXT_HOP: &str = "02:00:00:00:00:ff";
/// The receiver's IP address behind the first pair of interfaces, the destination of the packets.
pub const RECEIVER: &str = "10.0.1.2";
/// The sender's IP address before the first pair.
pub(super) const SENDER: &str = "10.0.0.2";

/// The two ends of a veth: of a host, and of the router.
pub(crate) const OF_HOST: usize = 2;
pub(crate) const OF_ROUTER: usize = 1;

/// The Ethernet address of one end of a router's link.
pub(crate) fn ether(router: usize, link: usize, end: usize) -> String {
    format!("02:00:00:{router:02x}:{link:02x}:{end:02x}")
}

/// The devices of one pair of interfaces of a router, counted from 1. Packets arrive at the first device and leave by the second.
pub(super) fn devices(pair: usize) -> [String; 2] {
    ["in", "out"].map(|name| if pair < 2 { name.to_string() } else { format!("{name}{pair}") })
}

/// The devices of the host before and behind a pair of interfaces of a router.
pub(super) fn outside(router: usize, pair: usize) -> [String; 2] {
    ["to", "from"].map(|name| format!("{name}{router}p{pair}"))
}

/// The links of a pair of interfaces: numbers that are part of Ethernet addresses.
pub(super) fn links(pair: usize) -> [usize; 2] {
    [2 * pair.max(1) - 1, 2 * pair.max(1)]
}

/// The IP address of the host behind the interface with this number, counted from 0.
pub fn host_address(interface: usize) -> String {
    format!("10.0.{interface}.2")
}

/// The hosts before and behind a pair of interfaces.
pub(super) fn host_addresses(pair: usize) -> [String; 2] {
    links(pair).map(|link| host_address(link - 1))
}

/// The interfaces of a router with this number of pairs: devices and addresses.
pub fn interfaces(pairs: usize) -> Vec<(String, String)> {
    let of_pair = |pair: usize| {
        let addresses = links(pair).map(|link| format!("10.0.{}.1/24", link - 1));
        devices(pair).into_iter().zip(addresses)
    };
    (1..=pairs.max(1)).flat_map(of_pair).collect()
}

/// Connects the devices `in` and `out` of a router to a sender and a receiver. Both call their devices `name`.
///
/// # Errors
/// The kernel does not permit it.
pub(crate) fn join(
    launcher: &Launcher,
    router: &Process,
    (number, name): (usize, &str),
    ends: [&Process; 2],
) -> Result<(), String> {
    join_pair(launcher, router, (number, 1), [name, name].map(str::to_string), ends)
}

/// Connects one pair of devices of a router to the devices with these names, before and behind it.
pub(super) fn join_pair(
    launcher: &Launcher,
    router: &Process,
    (number, pair): (usize, usize),
    names: [String; 2],
    ends: [&Process; 2],
) -> Result<(), String> {
    let own = devices(pair);
    for (((link, end), device), name) in links(pair).into_iter().zip(ends).zip(&own).zip(names) {
        let make = format!(
            "link add name {name} address {} type veth peer name {device} address {} netns {}",
            ether(number, link, OF_HOST),
            ether(number, link, OF_ROUTER),
            router.id()
        );
        launcher.ip(end, &[make, format!("link set {name} up")])?;
    }
    launcher.ip(router, &own.map(|device| format!("link set {device} up")))
}

/// Prepares the kernel of a host for its work.
///
/// # Errors
/// The kernel does not support it.
pub(super) fn prepare_kernel(
    launcher: &Launcher,
    host: &Process,
    task: KernelTask,
    pairs: usize,
) -> Result<(), String> {
    match task {
        KernelTask::Route => {
            let mut lines = Vec::new();
            for (interface, (device, address)) in interfaces(pairs).into_iter().enumerate() {
                lines.push(format!("address add {address} dev {device}"));
                let host = host_address(interface);
                lines.push(format!("neighbour add {host} lladdr {NEXT_HOP} dev {device}"));
            }
            launcher.ip(host, &lines)?;
            launcher.shell(host, "echo 1 > /proc/sys/net/ipv4/ip_forward")
        }
        KernelTask::Transfer => {
            for pair in 1..=pairs.max(1) {
                let [first, second] = devices(pair);
                for (from, to) in [(&first, &second), (&second, &first)] {
                    let rule = format!(
                        "tc qdisc add dev {from} clsact && tc filter add dev {from} ingress protocol all \
                         u32 match u32 0 0 action mirred egress redirect dev {to}"
                    );
                    launcher.shell(host, &rule).map_err(|e| {
                        format!("the kernel cannot transfer by a filter of tc (cls_u32, act_mirred): {e}")
                    })?;
                }
            }
            Ok(())
        }
        KernelTask::Receive | KernelTask::Send => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_interfaces() {
        let one = [("in", "10.0.0.1/24"), ("out", "10.0.1.1/24")].map(|(d, a)| (d.into(), a.into()));
        assert_eq!(interfaces(0), one);
        let four = interfaces(4);
        assert_eq!((four.len(), four[7].0.as_str(), four[7].1.as_str()), (8, "out4", "10.0.7.1/24"));
        assert_eq!(host_addresses(1), [SENDER, RECEIVER]);
        assert_eq!(host_addresses(4), ["10.0.6.2", "10.0.7.2"]);
        assert_eq!(outside(3, 2), ["to3p2", "from3p2"]);
        assert_eq!(ether(3, links(2)[1], OF_ROUTER), "02:00:00:03:04:01");
    }
}
