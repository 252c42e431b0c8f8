// SPDX-License-Identifier: MIT OR Apache-2.0
//! Abilities of the drivers of devices: XDP and queues.

use super::ethtool;
use super::facts::DeviceInfo;
use super::netlink::{Message, Netlink, attributes, number16, number32};
use rustix::io::Errno;

/// Length in bytes of the fixed part of messages of generic netlink (genlmsghdr).
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

/// The features of XDP that a device's driver has.
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

/// The abilities of a device's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The name of the driver; `None` if the device has none.
    pub driver: Option<String>,
    /// The number of receive queues in use.
    pub queues: u32,
    /// What the driver can do with XDP; `None` if the kernel does not tell (before Linux 6.3).
    pub xdp: Option<XdpFeatures>,
}

impl Abilities {
    /// Asks the kernel about the driver of a device.
    pub fn of(device: &DeviceInfo) -> Abilities {
        let name = &device.name;
        let xdp = features(device.index).ok();
        Abilities { driver: ethtool::driver(name), queues: ethtool::receive_queues(name), xdp }
    }
    /// Whether frames of the device may come from a sender that leaves checksums, segmentation and VLAN tags to the device,
    /// because they are not sent over a wire. METHOD XDP cannot complete such frames.
    pub fn may_carry_offloads(driver: Option<&str>) -> bool {
        matches!(driver, Some("veth" | "tun" | "virtio_net"))
    }
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
