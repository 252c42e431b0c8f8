// SPDX-License-Identifier: MIT OR Apache-2.0
//! How devices of the host relate to each other and to other programs: bridges, the other ends of veth pairs, addresses,
//! XDP programs.

use super::bpf::XdpMode;
use super::error::DeviceError;
use super::facts;
use super::netlink::{self as nl, Message, Netlink, attributes, number32};
use super::tc;
use std::net::IpAddr;

const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
const IFLA_XDP_PROG_ID: u16 = 4;
/// Flags of an XDP program: where it runs.
const XDP_GENERIC: u32 = 1 << 1;
const XDP_DRIVER: u32 = 1 << 2;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const AF_INET6: u8 = 10;
/// Lengths in bytes of the fixed parts of messages about links and addresses.
const LINK: usize = 16;
const ADDRESS: usize = 8;

/// The other end of a device that is one end of a pair, such as veth, or the device below a VLAN device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// The device has none.
    #[default]
    None,
    /// The interface index of a device of this network namespace.
    Here(u32),
    /// A device of another network namespace.
    Elsewhere,
}

/// A device's relations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// The interface index of the device.
    pub index: u32,
    /// The interface index of the bridge, bond or other device that it is a port of.
    pub master: Option<u32>,
    /// Its other end.
    pub peer: Peer,
    /// Its IPv4 and IPv6 addresses, with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// The relations of all devices of the network namespace.
///
/// # Errors
/// When the kernel does not answer.
pub fn relations() -> Result<Vec<Relations>, DeviceError> {
    let failed = |e| DeviceError::from_errno("devices", "list their relations", e);
    let n = Netlink::open().map_err(failed)?;
    let mut all: Vec<Relations> = Vec::new();
    let links = n.dump(Message::new(nl::RTM_GETLINK, 0, &[0; LINK]), |kind, body| {
        if kind == nl::RTM_NEWLINK {
            all.extend(link(body));
        }
    });
    links.map_err(failed)?;
    let addresses = n.dump(Message::new(nl::RTM_GETADDR, 0, &[0; ADDRESS]), |kind, body| {
        let device = number32(body, 4).and_then(|i| all.iter_mut().find(|r| r.index == i));
        if let (nl::RTM_NEWADDR, Some(device)) = (kind, device) {
            device.addresses.extend(address(body));
        }
    });
    addresses.map_err(failed)?;
    Ok(all)
}

fn link(body: &[u8]) -> Option<Relations> {
    let mut out = Relations { index: number32(body, 4)?, ..Relations::default() };
    let (mut peer, mut elsewhere) = (None, false);
    for (kind, value) in attributes(body.get(LINK..)?) {
        match kind {
            IFLA_MASTER => out.master = number32(value, 0).filter(|m| *m != 0),
            // A tunnel without a device below it says 0; some devices name themselves.
            IFLA_LINK => peer = number32(value, 0).filter(|p| *p != 0 && *p != out.index),
            IFLA_LINK_NETNSID => elsewhere = true,
            _ => {}
        }
    }
    out.peer = match peer {
        Some(_) if elsewhere => Peer::Elsewhere,
        Some(index) => Peer::Here(index),
        None => Peer::None,
    };
    Some(out)
}

fn address(body: &[u8]) -> Option<(IpAddr, u8)> {
    let (family, length) = (*body.first()?, *body.get(1)?);
    let (mut local, mut any) = (None, None);
    for (kind, value) in attributes(body.get(ADDRESS..)?) {
        let ip = match family {
            AF_INET6 => value.first_chunk::<16>().map(|b| IpAddr::from(*b)),
            _ => value.first_chunk::<4>().map(|b| IpAddr::from(*b)),
        };
        match kind {
            IFA_LOCAL => local = ip,
            IFA_ADDRESS => any = ip,
            _ => {}
        }
    }
    local.or(any).map(|ip| (ip, length))
}

/// Returns a message that changes the device with this interface index.
fn change(index: u32) -> Message {
    let mut head = [0; LINK];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    Message::new(nl::RTM_SETLINK, 0, &head)
}

/// Takes a device out of the bridge or bond that it is a port of.
///
/// # Errors
/// When the device is missing, or the kernel does not permit it.
pub fn release(name: &str) -> Result<(), DeviceError> {
    let index = facts::index(name)?;
    let failed = |e| DeviceError::from_errno(name, "take it out of its bridge", e);
    let n = Netlink::open().map_err(failed)?;
    n.request(change(index).attribute(IFLA_MASTER, &0u32.to_ne_bytes())).map_err(failed)
}

/// The identifier of the XDP program that a device runs; `None` if it runs none.
///
/// # Errors
/// When the device is missing, or the kernel does not answer.
pub fn xdp_program(name: &str) -> Result<Option<u32>, DeviceError> {
    let index = facts::index(name)?;
    let failed = |e| DeviceError::from_errno(name, "find its XDP program", e);
    let mut id = None;
    let mut head = [0u8; LINK];
    if let Some(at) = head.get_mut(4..8) {
        at.copy_from_slice(&index.to_ne_bytes());
    }
    let n = Netlink::open().map_err(failed)?;
    n.query(Message::new(nl::RTM_GETLINK, 0, &head), |_, body| {
        let of_link = attributes(body.get(LINK..).unwrap_or_default());
        let xdp = of_link.filter(|(kind, _)| *kind == IFLA_XDP).flat_map(|(_, value)| attributes(value));
        id = xdp
            .filter(|(kind, _)| *kind == IFLA_XDP_PROG_ID)
            .find_map(|(_, value)| number32(value, 0))
            .or(id);
    })
    .map_err(failed)?;
    Ok(id)
}

/// Detaches the XDP program of a device. The kernel refuses this for a program that a running process holds by a link, as
/// a router with METHOD XDP does.
///
/// # Errors
/// When the device is missing, or the kernel refuses.
pub fn detach_xdp(name: &str, mode: XdpMode) -> Result<(), DeviceError> {
    let index = facts::index(name)?;
    let failed = |e| DeviceError::from_errno(name, "detach its XDP program", e);
    let n = Netlink::open().map_err(failed)?;
    let flags = if mode == XdpMode::Generic { XDP_GENERIC } else { XDP_DRIVER };
    // A negative descriptor means no program.
    let message = change(index).nested(IFLA_XDP, |m| {
        m.attribute(IFLA_XDP_FD, &(-1i32).to_ne_bytes()).attribute(IFLA_XDP_FLAGS, &flags.to_ne_bytes())
    });
    n.request(message).map_err(failed)
}

/// The kinds of the tc filters on a device that are not those of a [`Shield`](super::Shield): those for received frames,
/// and those for sent frames.
///
/// # Errors
/// When the kernel does not answer.
pub fn other_filters(index: u32) -> Result<[Vec<String>; 2], DeviceError> {
    let failed = |e| DeviceError::from_errno("filters", "list them", e);
    let n = Netlink::open().map_err(failed)?;
    // An error means that the device has no place for filters.
    Ok(tc::others(&n, index).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_that_are_cut_are_read_as_far_as_possible() {
        let mut head = [0; LINK];
        head[4] = 7;
        let bytes = Message::new(nl::RTM_NEWLINK, 0, &head)
            .attribute(IFLA_LINK, &9u32.to_ne_bytes())
            .attribute(IFLA_MASTER, &3u32.to_ne_bytes())
            .attribute(IFLA_LINK_NETNSID, &0u32.to_ne_bytes())
            .bytes();
        let body = &bytes[16..];
        let all = link(body).unwrap();
        assert_eq!((all.index, all.master, all.peer), (7, Some(3), Peer::Elsewhere));
        let here = link(&body[..body.len() - 8]).unwrap();
        assert_eq!(here.peer, Peer::Here(9));
        for cut in 0..body.len() {
            let _ = (link(&body[..cut]), address(&body[..cut]));
        }
        let bytes = Message::new(nl::RTM_NEWADDR, 0, &[2, 24, 0, 0, 7, 0, 0, 0])
            .attribute(IFA_ADDRESS, &[10, 0, 0, 1])
            .attribute(IFA_LOCAL, &[10, 0, 0, 2])
            .bytes();
        assert_eq!(address(&bytes[16..]), Some(("10.0.0.2".parse().unwrap(), 24)));
    }

    #[test]
    fn the_loopback_device_has_no_other_end() {
        let lo = relations().unwrap().into_iter().find(|r| r.index == 1).unwrap();
        assert_eq!((lo.master, lo.peer), (None, Peer::None));
        assert_eq!(other_filters(1).unwrap(), [vec![], Vec::<String>::new()]);
        assert!(matches!(release("no-such-device"), Err(DeviceError::Missing { .. })));
        assert!(matches!(xdp_program("no-such-device"), Err(DeviceError::Missing { .. })));
        assert_eq!(xdp_program("lo").unwrap(), None);
        assert!(matches!(detach_xdp("no-such-device", XdpMode::Driver), Err(DeviceError::Missing { .. })));
    }
}
