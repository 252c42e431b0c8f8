// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of ARPQuerier.

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::net::Ipv4Addr;

/// Arguments of ARPQuerier.
#[derive(Args)]
pub struct Args {
    /// The querier's IP address; a prefix length, if given, defines the subnet and its broadcast address.
    pub(super) ip: OwnAddress,
    /// The querier's Ethernet address; may be left out if IP is an AddressInfo name that also defines an Ethernet
    /// address.
    pub(super) eth: Option<EtherAddr>,
    /// The maximum number of packets that wait for replies; 0: no limit.
    #[arg(keyword, show = "2048")]
    pub(super) capacity: Option<u32>,
    /// The maximum number of entries in the table; 0: no limit.
    #[arg(keyword, show = "65536")]
    pub(super) entry_capacity: Option<u32>,
    /// The maximum number of packets that wait for one address (if there are more, the latest are kept); 0: no limit.
    #[arg(keyword, show = "0")]
    pub(super) entry_packet_capacity: Option<u32>,
    /// When a capacity is exceeded, 1/CAPACITY_SLIM_FACTOR of it is freed by dropping packets or entries; 0: no more
    /// than needed.
    #[arg(keyword, show = "2")]
    pub(super) capacity_slim_factor: Option<u32>,
    /// How long an address counts as known after its last update; 0: for ever.
    #[arg(keyword, min = Nanos(0), show = "300s")]
    pub(super) timeout: Option<Nanos>,
    /// The broadcast address of the subnet, if it is not the one that IP defines.
    #[arg(keyword)]
    pub(super) broadcast: Option<Ipv4Addr>,
    /// The ARPTable to use in place of the querier's own table.
    #[arg(keyword)]
    pub(super) table: Option<TableRef>,
    /// The age from which a known address is queried again; 0: never.
    #[arg(keyword, default = Nanos(60_000_000_000), min = Nanos(0), show = "60s")]
    pub(super) poll_timeout: Nanos,
    /// Whether the queries that POLL_TIMEOUT causes are broadcast.
    #[arg(keyword, default = false)]
    pub(super) broadcast_poll: bool,
}

/// One of the element's own IP addresses, with its subnet. If a name from AddressInfo was given, `ether` is the
/// Ethernet address of that name.
#[derive(Clone, Copy, Debug)]
pub struct OwnAddress {
    pub(super) ip: Ipv4Addr,
    pub(super) subnet: Option<Prefix>,
    pub(super) ether: Option<EtherAddr>,
}

impl ArgValue for OwnAddress {
    const TYPE: &'static str = "ip-prefix";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<OwnAddress, ValueError> {
        let ether = EtherAddr::parse(text, cx).ok();
        match (Ipv4Addr::parse(text, cx), Prefix::read(text, cx, false)) {
            (Ok(ip), subnet) => Ok(OwnAddress { ip, subnet: subnet.ok().filter(|s| s.contains(ip)), ether }),
            (Err(_), Ok(p)) => Ok(OwnAddress { ip: p.addr, subnet: Some(p), ether }),
            (Err(_), Err(e)) => Err(e),
        }
    }
}

impl OwnAddress {
    /// Returns the broadcast address of the subnet. It is 255.255.255.255 if no subnet is given, or if the
    /// subnet has only one or two addresses and therefore no broadcast address (RFC 3021 section 2.2).
    pub(super) fn broadcast(&self) -> Ipv4Addr {
        self.subnet.filter(|s| s.len <= 30).map_or(Ipv4Addr::BROADCAST, Prefix::broadcast)
    }
}

/// The ARPTable that TABLE names, as an element number.
#[derive(Clone, Copy, Debug)]
pub struct TableRef(pub(super) u32);

impl ArgValue for TableRef {
    const TYPE: &'static str = "ARPTable";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<TableRef, ValueError> {
        let found = ElementRef::parse(text, cx)?;
        match cx.names.element_class(cx.scope, text) {
            Some((_, class)) if class != "ARPTable" => {
                Err(format!("'{text}' is of class {class}, not ARPTable").into())
            }
            _ => u32::try_from(found.0).map(TableRef).map_err(|_| "no such element".into()),
        }
    }
}
