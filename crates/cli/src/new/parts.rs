// SPDX-License-Identifier: MIT OR Apache-2.0
//! Argument types that several `castanet new` commands share: devices, addresses, networks.

use std::net::Ipv4Addr;
use std::str::FromStr;

/// The longest device name that Linux takes, in bytes (IFNAMSIZ, netdevice(7)).
const LONGEST_NAME: usize = 15;
/// Valid MTUs in bytes: from the smallest MTU of a link (RFC 791, section 3.2) to the longest IPv4 packet.
pub const MTUS: std::ops::RangeInclusive<u32> = 68..=65535;

/// An address and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: Ipv4Addr,
    /// The prefix length of the network.
    pub length: u8,
}

impl Prefix {
    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0)
    }
    /// Returns the first address of the network.
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() & self.mask())
    }
    /// Whether an address is in the network.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask() == self.network().to_bits()
    }
    /// Returns the broadcast address. Networks of one or two addresses have none (RFC 3021).
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        (self.length < 31).then(|| Ipv4Addr::from_bits(self.network().to_bits() | !self.mask()))
    }
    /// Whether the networks have addresses in common.
    pub fn overlaps(self, other: Prefix) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

impl FromStr for Prefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Prefix, String> {
        let (address, length) = text
            .split_once('/')
            .ok_or_else(|| format!("'{text}' has no prefix length; expected one as in 10.0.0.1/24"))?;
        let parsed = address.parse().map_err(|_| format!("'{address}' is not an IPv4 address"))?;
        let length = length.parse().ok().filter(|n| *n <= 32);
        let length =
            length.ok_or_else(|| format!("the prefix length of '{text}' is not a number from 0 to 32"))?;
        Ok(Prefix { address: parsed, length })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Parses a device name. Only names that need no quotes in a configuration are valid.
pub fn device(text: &str) -> Result<String, String> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if text.is_empty() || text.starts_with('-') || !text.bytes().all(plain) {
        return Err(format!("'{text}' is not a device name of letters, digits, '.', '_' and '-'"));
    }
    if text.len() > LONGEST_NAME {
        return Err(format!("the device name '{text}' is longer than {LONGEST_NAME} characters"));
    }
    Ok(text.to_string())
}

/// A device with the router's address.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The name of the device.
    pub device: String,
    /// The router's address on this device, with the prefix length of its network.
    pub prefix: Prefix,
}

impl FromStr for Interface {
    type Err = String;
    fn from_str(text: &str) -> Result<Interface, String> {
        let (name, prefix) =
            text.split_once('=').ok_or("expected DEVICE=ADDRESS/LENGTH, as in eth0=10.0.0.1/24")?;
        let (device, prefix) = (device(name)?, prefix.parse::<Prefix>()?);
        let address = prefix.address;
        let [first, ..] = address.octets();
        if first == 0 || first == 127 || first >= 224 {
            return Err(format!("{address} is not a valid host address"));
        }
        if prefix.length == 0 {
            return Err(format!("{prefix}: a prefix length of 0 would make all addresses one network"));
        }
        if prefix.length < 31 && address == prefix.network() {
            return Err(format!("{prefix} is the address of the network; the router needs a host address"));
        }
        if prefix.broadcast() == Some(address) {
            return Err(format!("{prefix} is the broadcast address of its network"));
        }
        Ok(Interface { device, prefix })
    }
}

/// Returns the devices that occur more than once.
pub fn twice<'a>(devices: &[&'a str]) -> Vec<&'a str> {
    let again = |(i, d): &(usize, &&str)| devices.iter().take(*i).any(|e| e == *d);
    devices.iter().enumerate().filter(again).map(|(_, d)| *d).collect()
}
