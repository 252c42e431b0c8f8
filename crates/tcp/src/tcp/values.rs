// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments and handler values of the classes.

use crate::engine::Flow;
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
pub struct Peers(pub(super) Vec<(SocketAddrV4, u32)>);

impl ArgValue for Peers {
    const TYPE: &'static str = "list of ADDR:PORT APPLICATION";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Peers, ValueError> {
        pairs(text, cx, |t, cx| Endpoint::parse(t, cx).map(|e| e.0)).map(Peers)
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
