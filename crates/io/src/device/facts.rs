// SPDX-License-Identifier: MIT OR Apache-2.0
//! Information about the devices of the host, and their configuration.

use super::bpf::XdpMode;
use super::error::DeviceError;
use super::netlink::{self as nl, Message, Netlink, attributes, number16, number32};
use crate::{LinkType, opener};
use rustix::io::Errno;
use std::net::Ipv4Addr;

const IFLA_ADDRESS: u16 = 1;
const IFLA_BROADCAST: u16 = 2;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_STATS64: u16 = 23;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const IFF_UP: u32 = 1;
const IFF_RUNNING: u32 = 0x40;
const AF_INET: u8 = 2;
const MAIN_TABLE: u8 = 254;
/// Lengths in bytes of the fixed parts of messages about links (`LINK`: ifinfomsg), addresses (`ADDRESS`: ifaddrmsg)
/// and routes (`ROUTE`: rtmsg).
const LINK: usize = 16;
const ADDRESS: usize = 8;
const ROUTE: usize = 12;

/// A device of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// The interface index of the device. A device that is removed and created again gets another index.
    pub index: u32,
    /// Whether the device is up.
    pub up: bool,
    /// Whether the device is up and has a carrier.
    pub running: bool,
    /// The MTU: length of the longest packet in bytes, without link header.
    pub mtu: u32,
    /// The type of the device's link header.
    pub link: LinkType,
    /// The device's Ethernet address; `None` if it has none.
    pub ether: Option<[u8; 6]>,
    /// The link-layer broadcast address; `None` if the device has none.
    pub ether_broadcast: Option<[u8; 6]>,
    /// The device's first IPv4 address, and the prefix length; `None` if it has no IPv4 address.
    pub ip: Option<(Ipv4Addr, u8)>,
    /// The IPv4 broadcast address of the device's network; `None` if there is none.
    pub broadcast: Option<Ipv4Addr>,
    /// The gateway of the default route over this device; `None` if there is no such route.
    pub gateway: Option<Ipv4Addr>,
    /// Where an XDP program runs for the device; `None` if there is none.
    pub xdp: Option<XdpMode>,
    /// Its counters.
    pub statistics: Statistics,
}

impl DeviceInfo {
    /// The network mask of the device's first IPv4 address; `None` if it has no IPv4 address.
    pub fn netmask(&self) -> Option<Ipv4Addr> {
        let (_, len) = self.ip?;
        let bits = u32::MAX.checked_shl(32u32.saturating_sub(u32::from(len))).unwrap_or(0);
        Some(Ipv4Addr::from_bits(bits))
    }
}

/// The counters of a device since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on receive.
    pub rx_dropped: u64,
    /// Packets dropped on send.
    pub tx_dropped: u64,
}

impl Statistics {
    fn read(bytes: &[u8]) -> Statistics {
        let at = |i: usize| {
            let word = bytes.get(i.saturating_mul(8)..).and_then(|b| b.first_chunk());
            word.map_or(0, |w| u64::from_ne_bytes(*w))
        };
        Statistics {
            rx_packets: at(0),
            tx_packets: at(1),
            rx_bytes: at(2),
            tx_bytes: at(3),
            rx_dropped: at(6),
            tx_dropped: at(7),
        }
    }
}

/// The link type for a hardware type of the kernel (ARPHRD_).
fn link_type(hardware: u16) -> LinkType {
    match hardware {
        // Ethernet, and the loopback device, whose frames have an Ethernet header.
        1 | 772 => LinkType::ETHERNET,
        // Devices without link header, PPP (packet sockets do not show its header), and tunnels.
        0xfffe | 512 | 768 | 769 | 776 | 778 => LinkType::RAW_IP,
        801..=803 => LinkType(if hardware == 803 { 127 } else { 105 }),
        other => LinkType(u32::from(other)),
    }
}

/// Reads where an XDP program runs, from the nested attributes.
fn attached(bytes: &[u8]) -> Option<XdpMode> {
    let place = attributes(bytes).find(|a| a.0 == IFLA_XDP_ATTACHED).and_then(|a| a.1.first().copied());
    // 0 is none, 1 the driver, 2 generic, 3 the device, 4 several.
    match place? {
        0 => None,
        2 => Some(XdpMode::Generic),
        _ => Some(XdpMode::Driver),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}
fn ip(bytes: &[u8]) -> Option<Ipv4Addr> {
    bytes.first_chunk::<4>().map(|b| Ipv4Addr::from(*b))
}
fn ether(bytes: &[u8]) -> Option<[u8; 6]> {
    <[u8; 6]>::try_from(bytes).ok()
}

/// All devices of the network namespace.
///
/// # Errors
/// When the kernel does not answer.
pub fn all() -> Result<Vec<DeviceInfo>, DeviceError> {
    read_all().map_err(|e| DeviceError::from_errno("devices", "list them", e))
}

/// Reads all devices without their addresses and gateways, because a host may have very many addresses and routes.
fn read_links(n: &Netlink) -> Result<Vec<DeviceInfo>, Errno> {
    let mut all: Vec<DeviceInfo> = Vec::new();
    n.dump(Message::new(nl::RTM_GETLINK, 0, &[0; LINK]), |kind, body| {
        if kind == nl::RTM_NEWLINK {
            all.extend(link(body));
        }
    })?;
    Ok(all)
}

fn read_all() -> Result<Vec<DeviceInfo>, Errno> {
    let n = Netlink::open()?;
    let mut all = read_links(&n)?;
    n.dump(Message::new(nl::RTM_GETADDR, 0, &[AF_INET, 0, 0, 0, 0, 0, 0, 0]), |_, body| {
        let found = number32(body, 4).and_then(|i| all.iter_mut().find(|d| d.index == i));
        if let (Some(d), Some(len)) = (found.filter(|d| d.ip.is_none()), body.get(1)) {
            let (mut local, mut address) = (None, None);
            for (kind, value) in attributes(body.get(ADDRESS..).unwrap_or_default()) {
                match kind {
                    IFA_LOCAL => local = ip(value),
                    IFA_ADDRESS => address = ip(value),
                    IFA_BROADCAST => d.broadcast = ip(value),
                    _ => {}
                }
            }
            d.ip = local.or(address).map(|a| (a, *len));
        }
    })?;
    let mut head = [0; ROUTE];
    head[0] = AF_INET;
    n.dump(Message::new(nl::RTM_GETROUTE, 0, &head), |_, body| {
        // Skip routes that are not default routes. A default route has prefix length 0 and is in the main table.
        if body.get(1) != Some(&0) || body.get(4) != Some(&MAIN_TABLE) {
            return;
        }
        let (mut device, mut gateway) = (None, None);
        for (kind, value) in attributes(body.get(ROUTE..).unwrap_or_default()) {
            match kind {
                RTA_OIF => device = number32(value, 0),
                RTA_GATEWAY => gateway = ip(value),
                _ => {}
            }
        }
        if let Some(d) = all.iter_mut().find(|d| Some(d.index) == device && d.gateway.is_none()) {
            d.gateway = gateway;
        }
    })?;
    Ok(all)
}

fn link(body: &[u8]) -> Option<DeviceInfo> {
    let flags = number32(body, 8)?;
    let mut d = DeviceInfo {
        name: String::new(),
        index: number32(body, 4)?,
        up: flags & IFF_UP != 0,
        running: flags & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING,
        mtu: 0,
        link: link_type(number16(body, 2)?),
        ether: None,
        ether_broadcast: None,
        ip: None,
        broadcast: None,
        gateway: None,
        xdp: None,
        statistics: Statistics::default(),
    };
    for (kind, value) in attributes(body.get(LINK..)?) {
        match kind {
            IFLA_IFNAME => d.name = text(value),
            IFLA_MTU => d.mtu = number32(value, 0)?,
            IFLA_ADDRESS => d.ether = ether(value),
            IFLA_BROADCAST => d.ether_broadcast = ether(value),
            IFLA_XDP => d.xdp = attached(value),
            IFLA_STATS64 => d.statistics = Statistics::read(value),
            _ => {}
        }
    }
    Some(d)
}

/// Information about the device with this name.
///
/// # Errors
/// [`DeviceError::Missing`] when there is no such device.
pub fn info(name: &str) -> Result<DeviceInfo, DeviceError> {
    all()?.into_iter().find(|d| d.name == name).ok_or_else(|| DeviceError::missing(name))
}

/// Information about the device with this name, without IP address and gateway.
///
/// # Errors
/// [`DeviceError::Missing`] when there is no such device.
pub fn link_info(name: &str) -> Result<DeviceInfo, DeviceError> {
    let links = Netlink::open().and_then(|n| read_links(&n));
    let links = links.map_err(|e| DeviceError::from_errno(name, "find it", e))?;
    links.into_iter().find(|d| d.name == name).ok_or_else(|| DeviceError::missing(name))
}

/// The names of all devices; empty after an error.
pub fn names() -> Vec<String> {
    let links = Netlink::open().and_then(|n| read_links(&n)).unwrap_or_default();
    let mut names: Vec<String> = links.into_iter().map(|d| d.name).collect();
    names.sort_unstable();
    names
}

/// The interface index of the device with this name, and whether the device is up; `None` if it does not
/// exist.
pub fn state(name: &str) -> Option<(u32, bool)> {
    link_info(name).ok().map(|d| (d.index, d.up))
}

/// Settings for a device; `None` leaves a setting unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The IPv4 address and the prefix length.
    pub ip: Option<(Ipv4Addr, u8)>,
    /// The gateway of the default route.
    pub gateway: Option<Ipv4Addr>,
    /// The MTU: length of the longest packet in bytes.
    pub mtu: Option<u32>,
    /// The Ethernet address.
    pub ether: Option<[u8; 6]>,
    /// Whether the device is up.
    pub up: Option<bool>,
}

/// Makes the message that adds an address to the device with interface index `number`, or removes the address. The
/// message type `kind` says which.
fn address(kind: u16, number: u32, (ip, len): (Ipv4Addr, u8)) -> Message {
    let mut head = [AF_INET, len, 0, 0, 0, 0, 0, 0];
    head[4..].copy_from_slice(&number.to_ne_bytes());
    let host = 32u32.saturating_sub(u32::from(len));
    let broadcast = ip.to_bits() | !u32::MAX.checked_shl(host).unwrap_or(0);
    let flags = if kind == nl::RTM_NEWADDR { nl::CREATE | nl::REPLACE } else { 0 };
    let m = Message::new(kind, flags, &head)
        .attribute(IFA_LOCAL, &ip.octets())
        .attribute(IFA_ADDRESS, &ip.octets());
    if len < 31 { m.attribute(IFA_BROADCAST, &broadcast.to_be_bytes()) } else { m }
}

/// Makes the message that adds a default route over the device with interface index `number`, or removes the route.
/// The message type `kind` says which.
fn default_route(kind: u16, number: u32, gateway: Ipv4Addr) -> Message {
    // Table main, protocol static, scope universe, type unicast.
    let head = [AF_INET, 0, 0, 0, MAIN_TABLE, 4, 0, 1, 0, 0, 0, 0];
    let flags = if kind == nl::RTM_NEWROUTE { nl::CREATE | nl::REPLACE } else { 0 };
    Message::new(kind, flags, &head)
        .attribute(RTA_GATEWAY, &gateway.octets())
        .attribute(RTA_OIF, &number.to_ne_bytes())
}

/// Removes the given address and the given default route of a device, if they exist.
///
/// # Errors
/// Errors of the kernel.
pub fn take_away(name: &str, setup: &Setup) -> Result<(), DeviceError> {
    if let Some(opener) = opener::client() {
        return opener.take_away(name, setup);
    }
    let number = index(name)?;
    let failed = |e| DeviceError::from_errno(name, "take its address away", e);
    let n = Netlink::open().map_err(failed)?;
    let route = setup.gateway.map(|g| default_route(nl::RTM_DELROUTE, number, g));
    let address = setup.ip.map(|ip| address(nl::RTM_DELADDR, number, ip));
    for message in [route, address].into_iter().flatten() {
        match n.request(message) {
            Ok(()) | Err(Errno::SRCH | Errno::ADDRNOTAVAIL) => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(())
}

/// Configures a device.
///
/// # Errors
/// Errors of the kernel.
pub fn set_up(name: &str, setup: &Setup) -> Result<(), DeviceError> {
    if let Some(opener) = opener::client() {
        return opener.set_up(name, setup);
    }
    let number = index(name)?;
    let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
    let n = Netlink::open().map_err(failed("set it up"))?;
    let link = |up: Option<bool>| {
        let mut head = [0; LINK];
        head[4..8].copy_from_slice(&number.to_ne_bytes());
        if let Some(up) = up {
            head[8..12].copy_from_slice(&u32::from(up).to_ne_bytes());
            head[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
        }
        Message::new(nl::RTM_NEWLINK, 0, &head)
    };
    if let Some(mtu) = setup.mtu {
        let m = link(None).attribute(IFLA_MTU, &mtu.to_ne_bytes());
        n.request(m).map_err(failed("set its MTU"))?;
    }
    if let Some(ether) = setup.ether {
        n.request(link(None).attribute(IFLA_ADDRESS, &ether)).map_err(failed("set its Ethernet address"))?;
    }
    if let Some(ip) = setup.ip {
        n.request(address(nl::RTM_NEWADDR, number, ip)).map_err(failed("set its address"))?;
    }
    if setup.up.is_some() {
        n.request(link(setup.up)).map_err(failed("bring it up"))?;
    }
    if let Some(gateway) = setup.gateway {
        n.request(default_route(nl::RTM_NEWROUTE, number, gateway)).map_err(failed("set its gateway"))?;
    }
    Ok(())
}

/// The interface index of the device with this name.
///
/// # Errors
/// [`DeviceError::Missing`] when there is no such device.
pub fn index(name: &str) -> Result<u32, DeviceError> {
    let failed = |e| DeviceError::from_errno(name, "find it", e);
    let socket = Netlink::open().map_err(failed)?;
    rustix::net::netdevice::name_to_index(socket.socket(), name).map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_is_known() {
        let lo = info("lo").unwrap();
        assert_eq!((lo.index, lo.link, lo.ether), (1, LinkType::ETHERNET, Some([0; 6])));
        assert_eq!(lo.mtu, 65536);
        assert_eq!(index("lo"), Ok(1));
        assert_eq!(state("lo").map(|s| s.0), Some(1));
        assert!(names().contains(&"lo".to_string()));
    }

    #[test]
    fn missing_devices_are_told_with_those_that_are_there() {
        let error = info("no-such-device").unwrap_err();
        assert!(matches!(error, DeviceError::Missing { .. }));
        assert!(error.to_string().starts_with("no-such-device: no such device\n  help: devices here: "));
        assert!(error.help().contains("lo"), "{error}");
        assert_eq!(index("no-such-device").unwrap_err(), error);
        // This name is too long for a device.
        assert!(set_up(&"x".repeat(40), &Setup::default()).is_err());
    }

    #[test]
    fn masks() {
        let mut d = info("lo").unwrap();
        for (len, mask) in [(0, "0.0.0.0"), (1, "128.0.0.0"), (24, "255.255.255.0"), (32, "255.255.255.255")]
        {
            d.ip = Some((Ipv4Addr::LOCALHOST, len));
            assert_eq!(d.netmask().unwrap().to_string(), mask);
        }
    }
}
