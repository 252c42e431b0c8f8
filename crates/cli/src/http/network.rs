// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks of HTTP clients.

use std::net::IpAddr;

/// A network: an address and the length of its prefix, `192.0.2.0/24`. An address alone is a network of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// The length of the prefix, at most that of the address.
    length: u32,
}

/// Returns the bits of an address, and their number. The bits are the highest ones.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(a) => (u128::from(a.to_bits()) << 96, 32),
        IpAddr::V6(a) => (a.to_bits(), 128),
    }
}

impl std::str::FromStr for Network {
    type Err = String;
    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || "expected a network such as 192.0.2.0/24 or 2001:db8::/32".to_string();
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let all = bits(address).1;
        let length = length.map_or(Ok(all), str::parse).map_err(|_| wrong())?;
        if length > all { Err(wrong()) } else { Ok(Network { address, length }) }
    }
}

impl Network {
    /// Whether an address is in the network. An IPv4 address in the form of an IPv6 address counts as an IPv4 address.
    pub fn has(&self, address: IpAddr) -> bool {
        let ((network, all), (client, of)) = (bits(self.address), bits(address.to_canonical()));
        let differ = (network ^ client).checked_shr(128 - self.length).unwrap_or(0);
        all == of && differ == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_with_its_prefix() {
        for (network, address, want) in [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.0/24", "::ffff:192.0.2.9", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "255.0.0.1", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "10.0.0.1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("2001:db8::1/128", "2001:db8::2", false),
        ] {
            let has = network.parse::<Network>().ok().zip(address.parse().ok()).map(|(n, a)| n.has(a));
            assert_eq!(has, Some(want), "{network} {address}");
        }
        for text in ["", "192.0.2.0/33", "::/129", "192.0.2/24", "h/8", "192.0.2.0/", "192.0.2.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
