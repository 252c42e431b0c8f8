// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF_FILTER: compiles an expression of tcpdump. The expression may use the names that the configuration defines for
//! addresses and ports.

use super::instructions;
use castanet_classify::bpf::{Frames, compile as compile_text};
use castanet_classify::names;
use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::Instruction;
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

/// Lets the filter compiler look up the names of a configuration.
struct ConfigNames<'a>(ArgCx<'a>);

impl names::Names for ConfigNames<'_> {
    fn ip(&self, name: &str) -> Option<[u8; 4]> {
        Ipv4Addr::parse(name, &self.0).ok().map(|a| a.octets())
    }
    fn net(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let p = Prefix::read(name, &self.0, false).ok()?;
        Some((p.network().octets(), p.mask().octets()))
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        EtherAddr::parse(name, &self.0).ok().map(|a| a.0)
    }
    fn port(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let find = |p| self.0.names.port(self.0.scope, name, p);
        proto.map_or_else(|| find(6).or_else(|| find(17)), find)
    }
}

/// Compiles a filter for frames of the given link type.
pub fn compile(text: &str, link: LinkType, cx: ArgCx<'_>) -> Result<Vec<Instruction>, ConfigError> {
    // The kernel removes VLAN tags from frames before packet sockets see them.
    let frames = if link.is_ethernet() { Frames::EthernetUntagged } else { Frames::Ip };
    compile_text(text, frames, &ConfigNames(cx)).map(instructions).map_err(|e| {
        let found = text.get(e.range.clone()).filter(|t| !t.is_empty()).map(|t| format!(" at '{t}'"));
        let error =
            ArgError::new(format!("BPF_FILTER: {}{}", e.message, found.unwrap_or_default()), 0..usize::MAX);
        match e.expected {
            Some(what) => error.help(format!("expected {what}")),
            None => error,
        }
        .into()
    })
}
