// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors in scripts.

use super::line::{number, range};
use castanet_tcp::engine::{Flow, IcmpError};

/// An ICMP error about a segment. The number counts from the initial one.
#[derive(Clone, Debug)]
pub struct Icmp {
    seq: u32,
    length: u32,
    kind: u8,
    code: u8,
    mtu: u16,
}

/// Types and codes, by their names in packetdrill.
const NAMES: [(&str, &str, u8, u8); 11] = [
    ("unreachable", "net_unreachable", 3, 0),
    ("unreachable", "host_unreachable", 3, 1),
    ("unreachable", "protocol_unreachable", 3, 2),
    ("unreachable", "port_unreachable", 3, 3),
    ("unreachable", "frag_needed", 3, 4),
    ("unreachable", "source_route_failed", 3, 5),
    ("source_quench", "", 4, 0),
    ("time_exceeded", "exceeded_in_transit", 11, 0),
    ("time_exceeded", "reassembly_time_exceeded", 11, 1),
    ("parameter_problem", "", 12, 0),
    ("parameter_problem", "missing_option", 12, 1),
];

/// `[FIRST:LAST(LENGTH)] icmp TYPE [CODE] [mtu N]`
pub fn error(text: &str) -> Result<Icmp, String> {
    let (segment, rest) = text.trim().strip_prefix('[').and_then(|t| t.split_once(']')).ok_or("no ']'")?;
    let (seq, length) = range(segment)?;
    let mut words = rest.split_whitespace().peekable();
    if words.next() != Some("icmp") {
        return Err("no 'icmp'".into());
    }
    let kind = words.next().ok_or("no type")?;
    let code = words.next_if(|w| *w != "mtu").unwrap_or_default();
    let (.., kind, code) =
        *NAMES.iter().find(|n| (n.0, n.1) == (kind, code)).ok_or(format!("'{kind} {code}' is no error"))?;
    let mtu = match words.next() {
        Some("mtu") => number(words.next().ok_or("no MTU")?)?,
        Some(other) => return Err(format!("'{other}'?")),
        None => 0,
    };
    Ok(Icmp { seq, length, kind, code, mtu })
}

impl Icmp {
    /// The error, about a segment without options of a connection with this initial number.
    pub fn error(&self, flow: Flow, iss: u32) -> IcmpError {
        let Icmp { kind, code, mtu, .. } = *self;
        let size = 40 + self.length as u16;
        IcmpError { flow, kind, code, seqno: iss.wrapping_add(self.seq), size, mtu }
    }
}
