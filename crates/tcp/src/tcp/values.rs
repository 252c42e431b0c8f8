// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments and handler values of the classes.

use crate::application::Peer;
use crate::engine::{Ecn, Flow, Route, is_host};
use castanet_element::prelude::*;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A TCPStack, as an element number.
#[derive(Clone, Copy, Debug)]
pub struct StackRef(pub(super) u32);

impl ArgValue for StackRef {
    const TYPE: &'static str = "TCPStack";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<StackRef, ValueError> {
        let found = ElementRef::parse(text, cx)?;
        match cx.names.element_class(cx.scope, text) {
            Some((_, class)) if class != "TCPStack" => {
                Err(format!("'{text}' is of class {class}, not TCPStack").into())
            }
            _ => u32::try_from(found.0).map(StackRef).map_err(|_| "no such element".into()),
        }
    }
}

/// An address and a port: `ADDR:PORT`, or `ADDR PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(pub SocketAddrV4);

impl ArgValue for Endpoint {
    const TYPE: &'static str = "ip:port";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Endpoint, ValueError> {
        let parts = text.split_once(':').or_else(|| text.split_once(char::is_whitespace));
        let (ip, port) = parts.ok_or_else(|| ValueError::from("expected ADDR:PORT"))?;
        let (ip, port) = (Ipv4Addr::parse(ip.trim(), cx)?, u16::parse(port.trim(), cx)?);
        Ok(Endpoint(SocketAddrV4::new(ip, port)))
    }
}

/// A peer, and the hosts over which a source route leads to it: `ADDR:PORT`, `ADDR:PORT@HOP@HOP` for a loose route, or
/// `ADDR:PORT!HOP!HOP` for a strict one (RFC 791, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along(pub Peer);

impl ArgValue for Along {
    const TYPE: &'static str = "ip:port, with @ip or !ip for each host on the way";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Along, ValueError> {
        let mark = if text.contains('!') { '!' } else { '@' };
        let mut parts = text.split(mark);
        let Endpoint(end) = Endpoint::parse(parts.next().unwrap_or_default(), cx)?;
        let hops = parts.map(|hop| Ipv4Addr::parse(hop.trim(), cx)).collect::<Result<Vec<_>, _>>()?;
        if let Some(wrong) = hops.iter().find(|hop| !is_host(**hop)) {
            return Err(format!("{wrong} is no host, so no route leads over it").into());
        }
        let route = Route::over(mark == '!', &hops, *end.ip());
        let route = route.ok_or("a source route leads over nine hosts at most")?;
        Ok(Along(Peer { end, route }))
    }
}

/// When connections use explicit congestion notification.
impl ArgValue for Ecn {
    const TYPE: &'static str = "off, accept or offer";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Ecn, ValueError> {
        match text {
            "off" => Ok(Ecn::Off),
            "accept" => Ok(Ecn::Accept),
            "offer" => Ok(Ecn::Offer),
            _ => Err(format!("'{text}' is not 'off', 'accept' or 'offer'").into()),
        }
    }
}

/// Ports with the applications that listen on them: `PORT APPLICATION`, as often as wanted.
#[derive(Clone, Debug, Default)]
pub struct Services(pub(super) Vec<(u16, u32)>);

impl ArgValue for Services {
    const TYPE: &'static str = "list of PORT APPLICATION";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Services, ValueError> {
        pairs(text, cx, u16::parse).map(Services)
    }
}

/// Connections to open, with their applications: `ADDR:PORT APPLICATION`, as often as wanted.
#[derive(Clone, Debug, Default)]
pub struct Peers(pub(super) Vec<(Peer, u32)>);

impl ArgValue for Peers {
    const TYPE: &'static str = "list of ADDR:PORT APPLICATION";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Peers, ValueError> {
        pairs(text, cx, |t, cx| Along::parse(t, cx).map(|a| a.0)).map(Peers)
    }
}

/// Reads pairs of words, of which the second ones name elements.
fn pairs<T>(
    text: &str,
    cx: &ArgCx<'_>,
    first: impl Fn(&str, &ArgCx<'_>) -> Result<T, ValueError>,
) -> Result<Vec<(T, u32)>, ValueError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [a, element] => {
            let (a, found) = (first(a, cx)?, ElementRef::parse(element, cx)?);
            Ok((a, u32::try_from(found.0).map_err(|_| ValueError::from("no such element"))?))
        }
        _ => Err(format!("an application is expected after '{}'", pair.concat()).into()),
    });
    pairs.collect()
}

/// The two ends of a connection, as the handler `connections` shows them: `LOCAL REMOTE`.
#[derive(Clone, Copy, Debug)]
pub struct Ends(pub(super) Flow);

impl ArgValue for Ends {
    const TYPE: &'static str = "LOCAL REMOTE";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Ends, ValueError> {
        let ends: Vec<&str> = text.split_whitespace().collect();
        match ends[..] {
            [local, remote] => {
                let end = |t| Endpoint::parse(t, cx).map(|e| e.0);
                Ok(Ends(Flow { local: end(local)?, remote: end(remote)? }))
            }
            _ => Err("expected ADDR:PORT ADDR:PORT, of this end and of the peer".into()),
        }
    }
}
