// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF_FILTER: compiles an expression of tcpdump. The expression may use the names that the configuration defines for
//! addresses and ports.

use super::instructions;
use crate::classify::patterns::ConfigNames;
use castanet_classify::bpf::{Frames, compile as compile_text};
use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::Instruction;

/// Compiles a filter for frames of the given link type.
pub fn compile(text: &str, link: LinkType, cx: ArgCx<'_>) -> Result<Vec<Instruction>, ConfigError> {
    // The kernel removes VLAN tags from frames before packet sockets see them.
    let frames = if link.is_ethernet() { Frames::EthernetUntagged } else { Frames::Ip };
    compile_text(text, frames, &ConfigNames::for_tcpdump(cx)).map(instructions).map_err(|e| {
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
