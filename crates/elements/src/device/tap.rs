// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router's end of a TUN or TAP device: the common part of KernelTap, KernelTun, FromHost and ToHost.

use super::intake::ipv4_header;
use super::offload::{header_of, note};
use castanet_element::prelude::*;
use castanet_io::device::{self, DeviceError, Outgoing, Refusal, Setup, Start, Tun, TunOptions};
use std::net::Ipv4Addr;

/// The settings that the configuration gives for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) tap: bool,
    pub(super) ip: Option<(Ipv4Addr, u8)>,
    pub(super) gateway: Option<Ipv4Addr>,
    pub(super) ether: Option<[u8; 6]>,
    pub(super) mtu: u32,
}

impl Wanted {
    /// Returns the key by which a hot swap finds the device: its name and kind, or all settings if the kernel chooses
    /// the name.
    pub(super) fn key(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let Wanted { tap, ip, gateway, ether, mtu, .. } = self;
        if name.contains('%') {
            format!("host device {name} {tap} {ip:?} {gateway:?} {ether:?} {mtu}")
        } else {
            format!("host device {name} {tap}")
        }
    }
    /// Changes the open device, whose settings are `old`. On an error, the old settings are restored.
    pub(super) fn change(&self, old: &Wanted, tun: &Tun) -> Result<(), DeviceError> {
        self.change_all(old, tun).inspect_err(|_| {
            // Ignore an error here: restoring fails only for the setting that could not be changed, and that setting
            // still has its old value.
            let _ = old.change_all(self, tun);
        })
    }
    fn change_all(&self, old: &Wanted, tun: &Tun) -> Result<(), DeviceError> {
        let setup = |new: &Wanted, old: &Wanted| Setup {
            ip: new.ip.filter(|_| new.ip != old.ip),
            gateway: new.gateway.filter(|_| new.gateway != old.gateway),
            mtu: (new.mtu != old.mtu).then_some(new.mtu),
            ether: new.ether.filter(|_| new.tap && new.ether != old.ether),
            up: None,
        };
        let (come, go) = (setup(self, old), setup(old, self));
        if come != Setup::default() {
            device::set_up(tun.name(), &come)?;
        }
        // If the new settings have a gateway, the new default route has replaced the old one, so there is no old route
        // to remove.
        let gateway = go.gateway.filter(|_| self.gateway.is_none());
        if go.ip.is_some() || gateway.is_some() {
            device::take_away(tun.name(), &Setup { ip: go.ip, gateway, ..Setup::default() })?;
        }
        Ok(())
    }
    /// Creates the device and sets it up.
    pub(super) fn open(&self) -> Result<Tun, DeviceError> {
        let options = TunOptions {
            name: self.name.clone(),
            tap: self.tap,
            queues: 1,
            offload: device::OFFLOAD_ALL,
            ..TunOptions::default()
        };
        let tun = Tun::open(&options)?;
        let setup = Setup {
            ip: self.ip,
            gateway: self.gateway,
            mtu: Some(self.mtu),
            ether: self.ether.filter(|_| self.tap),
            up: Some(true),
        };
        device::set_up(tun.name(), &setup)?;
        Ok(tun)
    }
    pub(super) fn start(&self) -> Start {
        if self.tap { Start::Ethernet } else { Start::Ip }
    }
    /// Returns the smallest length at which a packet of the host is too long: the MTU, an Ethernet header with a VLAN
    /// tag, and one byte more.
    pub(super) fn room(&self) -> usize {
        (self.mtu as usize).saturating_add(19)
    }
}

/// The result of a read from the host.
pub(super) enum Read {
    /// A valid packet.
    Packet(Packet),
    /// A packet that is not IP, from a device that carries IP packets.
    Bad(Packet),
    /// A packet was lost, for this reason.
    Lost(Reason),
    /// No packet is waiting.
    None,
}

impl Read {
    /// Returns how many packets entered the router: 0 or 1.
    pub(super) fn packets(&self) -> u64 {
        u64::from(!matches!(self, Read::None))
    }
}

/// The maximum number of bytes of one read: an Ethernet header with a VLAN tag, and a super-packet.
const LARGEST: usize = 65536 + 18;

/// Reads one packet that the host sent. Reads into `scratch` first, because the length of the packet is not known in
/// advance.
pub(super) fn read(
    tun: &Tun,
    wanted: &Wanted,
    headroom: usize,
    now: i64,
    scratch: &mut Vec<u8>,
) -> Result<Read, DeviceError> {
    scratch.resize(LARGEST, 0);
    let Some((vnet, n)) = tun.receive(0, scratch)? else { return Ok(Read::None) };
    // Drop a packet that is longer than the MTU of the device allows.
    if n >= if vnet.is_super() { LARGEST } else { wanted.room() } {
        return Ok(Read::Lost(Reason::TooLong));
    }
    let frame = scratch.get(..n).unwrap_or_default();
    let Some(mut p) = Packet::copy_with_headroom(headroom, frame) else {
        return Ok(Read::Lost(Reason::NoBuffer));
    };
    if note(&mut p, &vnet, wanted.start()).is_err() {
        return Ok(Read::Lost(Reason::BadOffload));
    }
    p.set_timestamp(now);
    if wanted.tap {
        p.set_mac_header(0);
        return Ok(Read::Packet(p));
    }
    if let Some((at, len)) = ipv4_header(Start::Ip, p.data()) {
        p.set_network_header(at, len);
        return Ok(Read::Packet(p));
    }
    let six = p.len() >= 40 && p.data().first().is_some_and(|b| b >> 4 == 6);
    if six {
        p.set_network_header(0, 40);
    }
    Ok(if six { Read::Packet(p) } else { Read::Bad(p) })
}

/// Sends one packet to the host. The error is the drop reason.
pub(super) fn write(tun: &Tun, start: Start, p: &Packet) -> Result<(), Reason> {
    let data = p.data();
    let fits = match start {
        Start::Ethernet => data.len() >= 14,
        Start::Ip => matches!(data.first().map(|b| b >> 4), Some(4 | 6)),
    };
    if !fits {
        return Err(if start == Start::Ethernet { Reason::TooShort } else { Reason::NotIp });
    }
    tun.send(0, Outgoing { vnet: header_of(p), data }).map_err(|r| match r {
        Refusal::Full | Refusal::Congested => Reason::QueueFull,
        Refusal::TooLong => Reason::TooLong,
        Refusal::Down | Refusal::Refused(_) => Reason::SendFailed,
    })
}
