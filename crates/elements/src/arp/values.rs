// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of the values that are written to the handlers of ARP elements.

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::net::Ipv4Addr;

/// An argument of a handler. Error messages about it begin with `IP: `.
#[derive(Clone, Copy, Debug)]
pub struct Ip<T>(pub T);

impl<T: ArgValue> ArgValue for Ip<T> {
    const TYPE: &'static str = T::TYPE;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Ip<T>, ValueError> {
        Ok(Ip(T::parse(text, cx).map_err(|e| format!("IP: {e}"))?))
    }
}

/// An IP address and its Ethernet address: `IP ETHER`.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub(super) ip: Ipv4Addr,
    pub(super) ether: EtherAddr,
}

impl ArgValue for Pair {
    const TYPE: &'static str = "IP ETHER";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Pair, ValueError> {
        let all = castanet_lang::args::words(text);
        let mut words = all.into_iter().map(|r| text.get(r).unwrap_or(""));
        let (ip, ether) = (words.next().unwrap_or(""), words.next());
        let ip = Ip::<Ipv4Addr>::parse(ip, cx);
        let ether = ether.ok_or_else(|| "ETH: required argument missing".into());
        let ether = ether.and_then(|t| EtherAddr::parse(t, cx).map_err(|e| format!("ETH: {e}").into()));
        match (ip, ether, words.next()) {
            (Ok(Ip(ip)), Ok(ether), None) => Ok(Pair { ip, ether }),
            (Ok(_), Ok(_), Some(_)) => Err("too many arguments".into()),
            (Err(a), Err(b), _) => Err(format!("{a}\n{b}").into()),
            (Err(e), ..) | (_, Err(e), _) => Err(e),
        }
    }
}
