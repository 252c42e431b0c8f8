// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses and ports that apply to many records.

use super::draft::Defaults;
use super::words::protocol;
use std::net::Ipv4Addr;

/// Addresses and ports for records without these fields. The text form is `SRC SPORT DST DPORT [PROTO]`, with
/// `-` for a value that is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    src: Option<u32>,
    sport: Option<u16>,
    dst: Option<u32>,
    dport: Option<u16>,
    protocol: Option<u8>,
}

impl Flow {
    /// Parses the words of the text form. Returns `None` for a syntax error.
    pub fn parse(words: &[&str]) -> Option<Flow> {
        let (src, sport, dst, dport, kind) = match *words {
            [src, sport, dst, dport] => (src, sport, dst, dport, "-"),
            [src, sport, dst, dport, kind, ..] => (src, sport, dst, dport, kind),
            _ => return None,
        };
        let address = |w: &str| match w {
            "-" => Some(None),
            _ => w.parse::<Ipv4Addr>().ok().map(|a| Some(u32::from(a))),
        };
        let port = |w: &str| if w == "-" { Some(None) } else { w.parse().ok().map(Some) };
        Some(Flow {
            src: address(src)?,
            sport: port(sport)?,
            dst: address(dst)?,
            dport: port(dport)?,
            protocol: if kind == "-" { None } else { Some(protocol(kind)?) },
        })
    }
    /// Overwrites the defaults with the values that are set.
    pub fn put(&self, defaults: &mut Defaults) {
        defaults.src = self.src.unwrap_or(defaults.src);
        defaults.sport = self.sport.unwrap_or(defaults.sport);
        defaults.dst = self.dst.unwrap_or(defaults.dst);
        defaults.dport = self.dport.unwrap_or(defaults.dport);
        defaults.protocol = self.protocol.unwrap_or(defaults.protocol);
    }
}
