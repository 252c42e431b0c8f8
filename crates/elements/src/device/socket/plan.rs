// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds, from the arguments of Socket, the kind of socket to open and its addresses.

use super::Args;
use castanet_classify::names;
use castanet_element::prelude::*;
use castanet_io::socket::SocketAddress;
use castanet_wire::ipv4::protocol::{TCP, UDP};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// A kind of socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// TCP over IPv4.
    Tcp,
    /// UDP over IPv4.
    Udp,
    /// A Unix stream.
    Unix,
    /// Unix datagrams.
    UnixDatagrams,
}

impl ArgValue for SocketKind {
    const TYPE: &'static str = "TCP, UDP, UNIX or UNIX_DGRAM";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<SocketKind, ValueError> {
        match text.to_ascii_uppercase().as_str() {
            "TCP" => Ok(SocketKind::Tcp),
            "UDP" => Ok(SocketKind::Udp),
            "UNIX" => Ok(SocketKind::Unix),
            "UNIX_DGRAM" => Ok(SocketKind::UnixDatagrams),
            _ => Err(ValueError::not_one_of(text, &["TCP", "UDP", "UNIX", "UNIX_DGRAM"])),
        }
    }
}

impl SocketKind {
    pub(super) fn is_stream(self) -> bool {
        matches!(self, SocketKind::Tcp | SocketKind::Unix)
    }
    fn is_unix(self) -> bool {
        matches!(self, SocketKind::Unix | SocketKind::UnixDatagrams)
    }
}

/// A port, by number or name. The number that a name stands for depends on the protocol.
#[derive(Clone, Debug)]
pub struct PortArg(String);

impl Default for PortArg {
    fn default() -> Self {
        PortArg("0".into())
    }
}

impl ArgValue for PortArg {
    const TYPE: &'static str = "ip-port";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<PortArg, ValueError> {
        String::parse(text, cx).map(PortArg)
    }
}

impl PortArg {
    /// Returns the number of the port for a protocol.
    pub(in crate::device) fn number(&self, protocol: u8, cx: &ArgCx<'_>) -> Result<u16, ValueError> {
        port(&self.0, protocol, cx)
    }
}

fn port(text: &str, protocol: u8, cx: &ArgCx<'_>) -> Result<u16, ValueError> {
    let named = || cx.names.port(cx.scope, text, protocol).or_else(|| names::port_number(text));
    u16::parse(text, cx).or_else(|e| named().ok_or(e))
}

/// The kind and the addresses of the socket to open.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) kind: SocketKind,
    /// The address that a client connects to, or that a server listens on.
    pub(super) place: SocketAddress,
    /// The address that a client connects from.
    pub(super) local: Option<SocketAddress>,
    pub(super) client: bool,
}

impl Plan {
    /// Makes the plan from the arguments. Returns all errors of the arguments, not only the first.
    pub(super) fn of(args: &Args, client: bool, cx: &ArgCx<'_>) -> Result<Plan, ConfigError> {
        let (place, local) = if args.kind.is_unix() { Plan::unix(args, cx)? } else { Plan::inet(args, cx)? };
        Ok(Plan { kind: args.kind, place, local: local.filter(|_| client), client })
    }

    fn unix(args: &Args, cx: &ArgCx<'_>) -> Result<(SocketAddress, Option<SocketAddress>), ConfigError> {
        if args.local_addr.is_some() || args.local_port.is_some() {
            return Err("too many arguments".into());
        }
        let file = |name: &str, text: &str| {
            let file = Filename::of_file(text, cx).map_err(|e| format!("{name}: {e}"))?;
            Ok::<_, ConfigError>(SocketAddress::Unix(PathBuf::from(file.0)))
        };
        let local = args.port.as_ref().map(|text| file("LOCAL_FILENAME", text)).transpose()?;
        Ok((file("FILENAME", &args.addr)?, local))
    }

    fn inet(args: &Args, cx: &ArgCx<'_>) -> Result<(SocketAddress, Option<SocketAddress>), ConfigError> {
        let protocol = if args.kind == SocketKind::Tcp { TCP } else { UDP };
        let mut errors = ConfigError::default();
        let mut note = |name: &str, e: ValueError| {
            errors.0.extend(ConfigError::from(format!("{name}: {e}")).0);
        };
        let addr = Ipv4Addr::parse(&args.addr, cx).map_err(|e| note("ADDR", e)).ok();
        let number = match &args.port {
            Some(text) => port(text, protocol, cx).map_err(|e| note("PORT", e)).ok(),
            None => {
                note("PORT", "required argument missing".into());
                None
            }
        };
        let local_addr = args.local_addr.as_ref().map(|text| Ipv4Addr::parse(text, cx)).transpose();
        let local_addr = local_addr.map_err(|e| note("LOCAL_ADDR", e)).ok().flatten();
        let local_port = args.local_port.as_ref().map(|p| p.number(protocol, cx)).transpose();
        let local_port = local_port.map_err(|e| note("LOCAL_PORT", e)).ok().flatten();
        let (Some(addr), Some(number), true) = (addr, number, errors.0.is_empty()) else {
            return Err(errors);
        };
        let local = (local_addr.is_some() || local_port.is_some()).then(|| {
            let addr = local_addr.unwrap_or(Ipv4Addr::UNSPECIFIED);
            SocketAddress::Inet(SocketAddrV4::new(addr, local_port.unwrap_or(0)))
        });
        Ok((SocketAddress::Inet(SocketAddrV4::new(addr, number)), local))
    }
}
