// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP and Ethernet addresses, prefixes, lists of them.

use super::{ArgValue, Show, ValueError, mend};
use crate::arg::ArgCx;
use crate::handler::ValueKind;
use castanet_lang::args as text;
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

/// Splits a name from a suffix that selects a kind of address: `eth0:bcast`.
pub(super) fn kind(t: &str) -> (&str, Option<String>) {
    match t.rsplit_once(':') {
        Some((name, kind)) if !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            (name, Some(kind.to_ascii_lowercase()))
        }
        _ => (t, None),
    }
}

/// Parses four decimal numbers with dots between them; none for any other text.
pub(super) fn dotted(t: &str) -> Option<[u8; 4]> {
    let mut out = [0; 4];
    let mut parts = t.split('.');
    for o in &mut out {
        let p = parts.next()?;
        if p.is_empty() || p.len() > 3 || !p.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *o = p.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// Help texts on the notation of addresses and prefixes.
const FOUR_NUMBERS: &str = "write four numbers from 0 to 255 with dots between them, such as 10.0.0.1";
const PREFIX_FORM: &str = "write an address and a length of 0 to 32, such as 10.0.0.0/8";
const ETHER_FORM: &str = "write six hexadecimal numbers with colons between them, such as 00:11:22:33:44:55";

impl ArgValue for Ipv4Addr {
    const TYPE: &'static str = "ip";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<Ipv4Addr, ValueError> {
        if let Some(a) = dotted(t) {
            return Ok(a.into());
        }
        let (name, kind) = kind(t);
        let found = cx.names.addresses(cx.scope, name);
        let value = found.and_then(|a| match kind.as_deref() {
            None | Some("ip" | "ip4") => a.ip,
            Some("bcast") => a.net.map(|(a, m)| {
                std::array::from_fn(|i| a.get(i).copied().unwrap_or(0) | !m.get(i).copied().unwrap_or(0))
            }),
            Some("gw") => a.gateway,
            _ => None,
        });
        value
            .map(Into::into)
            .ok_or_else(|| mend::address(t, cx, "IP address", FOUR_NUMBERS, "parse error".into()))
    }
}

/// An IPv4 prefix with the address that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address as written, host bits included.
    pub addr: Ipv4Addr,
    /// The length of the network part in bits, from 0 to 32.
    pub len: u8,
}

impl Prefix {
    /// The mask.
    pub fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(self.len.min(32))).unwrap_or(0))
    }
    /// The address without host bits.
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.addr.to_bits() & self.mask().to_bits())
    }
    /// The directed broadcast address.
    pub fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.addr.to_bits() | !self.mask().to_bits())
    }
    /// Whether an address lies in the prefix.
    pub fn contains(self, a: Ipv4Addr) -> bool {
        a.to_bits() & self.mask().to_bits() == self.network().to_bits()
    }
    /// Parses `A.B.C.D/LEN`, `A.B.C.D/MASK`, a short dotted prefix, or a name. With `bare`, an address alone
    /// is a prefix of 32 bits.
    pub fn read(t: &str, cx: &ArgCx<'_>, bare: bool) -> Result<Prefix, ValueError> {
        let bad = || mend::address(t, cx, "prefix", PREFIX_FORM, "parse error".into());
        match t.split_once('/') {
            Some((a, l)) => {
                let len = match l.parse::<u8>() {
                    Ok(n) if n <= 32 && l.bytes().all(|b| b.is_ascii_digit()) => n,
                    Ok(_) => {
                        let error: ValueError = format!("prefix length {l} is more than 32").into();
                        return Err(error.help(PREFIX_FORM));
                    }
                    Err(_) => {
                        let m = u32::from_be_bytes(dotted(l).ok_or_else(bad)?);
                        if m.leading_ones() + m.trailing_zeros() != 32 && m != 0 {
                            let ones = format!("{}/{}", a, m.leading_ones());
                            let error: ValueError = format!("mask {l} is not a prefix").into();
                            let help = format!(
                                "the ones of a mask have no zeros between them; did you mean '{ones}'?"
                            );
                            return Err(error.replacement(ones).help(help));
                        }
                        u8::try_from(m.leading_ones()).unwrap_or(32)
                    }
                };
                let parts = a.split('.').count();
                let full = if parts < 4 { format!("{a}{}", ".0".repeat(4 - parts)) } else { a.to_string() };
                let addr = match dotted(&full) {
                    Some(_) if parts < 4 && usize::from(len) > parts * 8 => return Err(bad()),
                    Some(d) => d.into(),
                    None => Ipv4Addr::parse(a, cx)?,
                };
                Ok(Prefix { addr, len })
            }
            None => {
                let (name, kind) = kind(t);
                let named = cx.names.addresses(cx.scope, name).and_then(|a| a.net);
                match (named, kind.as_deref()) {
                    (Some((a, m)), Some("net" | "ipnet" | "ip4net")) | (Some((a, m)), None)
                        if !bare || kind.is_some() =>
                    {
                        let len = u32::from_be_bytes(m).leading_ones();
                        Ok(Prefix { addr: a.into(), len: u8::try_from(len).unwrap_or(32) })
                    }
                    _ if bare => Ipv4Addr::parse(t, cx).map(|addr| Prefix { addr, len: 32 }),
                    _ => Err(bad()),
                }
            }
        }
    }
}

impl ArgValue for Prefix {
    const TYPE: &'static str = "ip-prefix";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<Prefix, ValueError> {
        Prefix::read(t, cx, true)
    }
}

impl Show for Prefix {
    const KIND: ValueKind = ValueKind::Address;
    fn show(&self) -> String {
        format!("{}/{}", self.network(), self.len)
    }
}

/// IPv4 addresses separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpList(pub Vec<Ipv4Addr>);

impl ArgValue for IpList {
    const TYPE: &'static str = "list of ip";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<IpList, ValueError> {
        let words = text::words(t);
        words
            .into_iter()
            .map(|r| Ipv4Addr::parse(t.get(r).unwrap_or(""), cx))
            .collect::<Result<_, _>>()
            .map(IpList)
    }
}

impl Show for IpList {
    const KIND: ValueKind = ValueKind::Address;
    fn show(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl ArgValue for EtherAddr {
    const TYPE: &'static str = "ether";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<EtherAddr, ValueError> {
        if let Ok(a) = t.parse::<EtherAddr>() {
            return Ok(a);
        }
        let (name, kind) = kind(t);
        let named = cx.names.addresses(cx.scope, name).and_then(|a| a.ether);
        match (named, kind.as_deref()) {
            (Some(a), None | Some("eth" | "ether")) => Ok(EtherAddr(a)),
            // Any address will do, because the configuration is only checked and processes no packets.
            (None, Some("eth" | "ether")) if cx.names.trusts_devices() => Ok(EtherAddr([2, 0, 0, 0, 0, 0])),
            _ => Err(mend::address(t, cx, "Ethernet address", ETHER_FORM, "parse error".into())),
        }
    }
}

impl Show for EtherAddr {
    const KIND: ValueKind = ValueKind::Address;
    fn show(&self) -> String {
        self.to_string()
    }
}
