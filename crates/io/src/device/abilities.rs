// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the drivers of devices can do with XDP.

use super::facts;
use super::netlink::{self as nl, Message, Netlink, attributes, number16, number32};
use super::sys;
use super::xdp::XdpMode;
use rustix::io::Errno;

const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_IFNAME: u16 = 3;
/// Length in bytes of the fixed part of messages about links (ifinfomsg), and of generic netlink (genlmsghdr).
const LINK: usize = 16;
const GENERIC: usize = 4;

/// The message type of the family that knows all families of generic netlink, its request for a family, and attributes.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// The request of the family `netdev` for a device, and attributes (Linux 6.3).
const GET_DEVICE: u8 = 1;
const IFINDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;

/// What a device's driver can do with XDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// It runs XDP programs.
    pub basic: bool,
    /// Programs can redirect frames to other devices and to sockets.
    pub redirect: bool,
    /// The device accesses the memory of AF_XDP sockets itself.
    pub zero_copy: bool,
    /// Frames may lie in several buffers.
    pub several_buffers: bool,
}

impl XdpFeatures {
    fn from_bits(bits: u32) -> XdpFeatures {
        let has = |bit: u32| bits & bit != 0;
        XdpFeatures { basic: has(1), redirect: has(2), zero_copy: has(8), several_buffers: has(32) }
    }
}

/// What is known about a device's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The name of the driver; `None` if the device has none.
    pub driver: Option<String>,
    /// The number of receive queues in use.
    pub queues: u32,
    /// What the driver can do with XDP; `None` if the kernel does not tell (before Linux 6.3).
    pub xdp: Option<XdpFeatures>,
    /// Where an XDP program runs for the device; `None` if there is none.
    pub attached: Option<XdpMode>,
}

/// Returns what is known about the driver of a device. What the kernel does not tell is missing.
pub fn abilities(name: &str) -> Abilities {
    let xdp = facts::index(name).ok().and_then(|index| features(index).ok());
    let attached = attached(name).ok().flatten();
    Abilities { driver: sys::driver(name), queues: sys::receive_queues(name), xdp, attached }
}

/// Makes a request of generic netlink.
fn request(family: u16, command: u8) -> Message {
    Message::new(family, 0, &[command, 1, 0, 0])
}

fn features(index: u32) -> Result<XdpFeatures, Errno> {
    let n = Netlink::open_generic()?;
    let mut family = None;
    n.query(request(CONTROL, GET_FAMILY).attribute(FAMILY_NAME, b"netdev\0"), |_, body| {
        let mut all = attributes(body.get(GENERIC..).unwrap_or_default());
        family = all.find(|a| a.0 == FAMILY_ID).and_then(|a| number16(a.1, 0));
    })?;
    let mut bits = None;
    let about = request(family.ok_or(Errno::NOENT)?, GET_DEVICE).attribute(IFINDEX, &index.to_ne_bytes());
    n.query(about, |_, body| {
        let mut all = attributes(body.get(GENERIC..).unwrap_or_default());
        // A number of 64 bits, of which the lower half is used. The host's byte order decides where that is.
        let word = if cfg!(target_endian = "little") { 0 } else { 4 };
        bits = all.find(|a| a.0 == XDP_FEATURES).and_then(|a| number32(a.1, word));
    })?;
    bits.map(XdpFeatures::from_bits).ok_or(Errno::NOENT)
}

fn attached(name: &str) -> Result<Option<XdpMode>, Errno> {
    let mut mode = None;
    Netlink::open()?.dump(Message::new(nl::RTM_GETLINK, 0, &[0; LINK]), |_, body| {
        let all: Vec<_> = attributes(body.get(LINK..).unwrap_or_default()).collect();
        let value = |kind| all.iter().find(|a| a.0 == kind).map(|a| a.1);
        let named = value(IFLA_IFNAME).is_some_and(|n| n.split(|b| *b == 0).next() == Some(name.as_bytes()));
        if let Some(xdp) = value(IFLA_XDP).filter(|_| named) {
            let place = attributes(xdp).find(|a| a.0 == IFLA_XDP_ATTACHED).and_then(|a| a.1.first().copied());
            // 0 is none, 1 the driver, 2 generic, 3 the device, 4 several.
            mode = match place {
                None | Some(0) => None,
                Some(2) => Some(XdpMode::Generic),
                Some(_) => Some(XdpMode::Driver),
            };
        }
    })?;
    Ok(mode)
}
