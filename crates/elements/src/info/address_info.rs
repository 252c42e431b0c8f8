// SPDX-License-Identifier: MIT OR Apache-2.0
//! AddressInfo: gives names to addresses.

use super::{Definition, each_argument};
use castanet_element::prelude::*;
use castanet_element::spec::names::Addresses;
use castanet_wire::ether::EtherAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Gives names to addresses, for all arguments that take an address.
///
/// Each argument is a name and its addresses: Ethernet, IPv4, IPv4 prefix (an address and its network), IPv6,
/// IPv6 prefix, or a name defined before, whose addresses are copied. A name that is defined inside a
/// compound element is valid only there.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// AddressInfo(mine 10.0.0.1/24 00:00:C0:3B:71:EF);
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> EtherEncap(0x0800, mine, ff:ff:ff:ff:ff:ff) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AddressInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct AddressInfo {
    args: Args,
}

/// Arguments of AddressInfo.
#[derive(Args)]
pub struct Args {
    /// A name and its addresses.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for AddressInfo {}

/// Parses an address of any kind, and adds it to the addresses of a name.
fn add(word: &str, scope: &str, names: &Names, to: &mut Addresses) -> Result<(), ValueError> {
    let cx = ArgCx { scope, names, origin: Origin::Operator };
    if let Ok(e) = word.parse::<EtherAddr>() {
        to.ether = Some(e.0);
    } else if let Some(known) = names.addresses(scope, word) {
        to.ip = known.ip.or(to.ip);
        to.net = known.net.or(to.net);
        to.ether = known.ether.or(to.ether);
        to.ip6 = known.ip6.or(to.ip6);
        to.net6 = known.net6.or(to.net6);
        to.gateway = known.gateway.or(to.gateway);
    } else if let Ok(a) = word.parse::<Ipv6Addr>() {
        to.ip6 = Some(a.octets());
    } else if let Some((addr, len)) = prefix6(word) {
        to.ip6 = Some(addr);
        to.net6 = Some((addr, len));
    } else if !word.contains('/')
        && let Ok(a) = Ipv4Addr::parse(word, &cx)
    {
        to.ip = Some(a.octets());
    } else if let Ok(p) = Prefix::read(word, &cx, false) {
        to.ip = Some(p.addr.octets());
        to.net = Some((p.addr.octets(), p.mask().octets()));
    } else {
        let error = ValueError::from(format!("bad address '{word}'"));
        return Err(error.help("write an IP address, perhaps with a prefix length, or an Ethernet address"));
    }
    Ok(())
}

fn prefix6(word: &str) -> Option<([u8; 16], u8)> {
    let (addr, len) = word.split_once('/')?;
    let len = len.bytes().all(|b| b.is_ascii_digit()).then(|| len.parse::<u8>().ok())??;
    Some((addr.parse::<Ipv6Addr>().ok()?.octets(), Some(len).filter(|l| *l <= 128)?))
}

impl Information for AddressInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| {
            let (name, addresses) = words.split_first().ok_or("expected 'NAME ADDRESS...'")?;
            if addresses.is_empty() {
                return Err(format!("expected an address behind '{name}'").into());
            }
            let mut all = *names.define_addresses(scope, name);
            let mut added = Ok(());
            for word in addresses {
                added = added.and(add(word, scope, names, &mut all));
            }
            if added.is_err() {
                // Define the name with all-zero addresses. Otherwise each use of it would be reported as an error, too.
                let (ip, net) = ([0; 4], ([0; 4], [0; 4]));
                all.ip.get_or_insert(ip);
                all.net.get_or_insert(net);
                all.ether.get_or_insert([0; 6]);
            }
            *names.define_addresses(scope, name) = all;
            added
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::messages;
    use super::*;

    #[test]
    fn every_kind_of_address() {
        let mut names = Names::new();
        let config = "a 10.0.0.1/24 02-00-00-00-00-0A, b 18.26.4.44, /* none */, c 2001:db8::1/64 b, d 10.1.0.0/255.255.0.0";
        AddressInfo::inform(config, "", &mut names).unwrap();
        AddressInfo::inform("a 1.1.1.1", "in/", &mut names).unwrap();
        let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
        let inner = ArgCx { scope: "in/", names: &names, origin: Origin::Operator };
        assert_eq!(Ipv4Addr::parse("a", &cx).unwrap(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(Ipv4Addr::parse("a:bcast", &cx).unwrap(), Ipv4Addr::new(10, 0, 0, 255));
        assert_eq!(Ipv4Addr::parse("a", &inner).unwrap(), Ipv4Addr::new(1, 1, 1, 1));
        assert_eq!(Prefix::parse("a:net", &cx).unwrap().show(), "10.0.0.0/24");
        assert_eq!(Prefix::parse("d:net", &cx).unwrap().show(), "10.1.0.0/16");
        assert_eq!(EtherAddr::parse("a", &cx).unwrap().0, [2, 0, 0, 0, 0, 10]);
        assert_eq!(Ipv4Addr::parse("c", &cx).unwrap(), Ipv4Addr::new(18, 26, 4, 44));
        assert_eq!(names.addresses("", "c").unwrap().net6.unwrap().1, 64);
    }

    #[test]
    fn errors_are_told_all_at_once() {
        let mut names = Names::new();
        let bad = AddressInfo::inform(
            "a, b 1.2.3, c 1.2.3.4/33, d 02:00:00:00:00, e nobody, f ::1/129",
            "",
            &mut names,
        );
        assert_eq!(
            messages(bad),
            [
                "expected an address behind 'a'",
                "bad address '1.2.3'",
                "bad address '1.2.3.4/33'",
                "bad address '02:00:00:00:00'",
                "bad address 'nobody'",
                "bad address '::1/129'",
            ]
        );
        AddressInfo::inform("", "", &mut names).unwrap();
    }
}
