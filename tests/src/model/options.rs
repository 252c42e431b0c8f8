// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processing of IP options by a router (RFC 791, 3.1; RFC 1812, 5.3.13).
use std::net::Ipv4Addr;

use super::masked::Masked;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;
/// Options with this bit are copied into every fragment.
const COPY: u8 = 0x80;

/// Splits options into (offset, bytes), leaving out the NOP options. Stops at the end of the list, or at an option that
/// does not fit. Also returns the offset of an option that does not fit.
fn split(options: &[u8]) -> (Vec<(usize, &[u8])>, Option<usize>) {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(kind) = options.get(at) {
        match *kind {
            END => break,
            NO_OPERATION => at += 1,
            _ => {
                let length = options.get(at + 1).copied().map(usize::from).filter(|length| *length >= 2);
                let Some(part) = length.and_then(|length| options.get(at..at + length)) else {
                    return (parts, Some(at));
                };
                parts.push((at, part));
                at += part.len();
            }
        }
    }
    (parts, None)
}

/// Whether the packet has a source route.
pub(super) fn has_source_route(options: &[u8]) -> bool {
    split(options).0.iter().any(|(_, option)| matches!(option[0], LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE))
}

/// Returns the options that fragments after the first carry, padded to whole words.
pub(super) fn copied(options: &[u8]) -> Vec<u8> {
    let parts = split(options).0;
    let mut kept: Vec<u8> = parts
        .iter()
        .filter(|(_, option)| option[0] & COPY != 0)
        .flat_map(|(_, option)| option.to_vec())
        .collect();
    kept.resize(kept.len().next_multiple_of(4), END);
    kept
}

/// Fills in record route and timestamp options with the address `own` of the outgoing interface. `others` are the
/// router's other addresses. An error contains the offsets in the packet that an ICMP error may give for the bad byte.
/// There may be several, because RFC 792 only says "the octet where an error was detected".
pub(super) fn fill_in(
    packet: &[u8],
    header_len: usize,
    own: Ipv4Addr,
    others: &[Ipv4Addr],
) -> Result<Masked, Vec<u8>> {
    let mut filled = Masked::new(packet.to_vec());
    let (parts, misfit) = split(&packet[20..header_len]);
    let byte = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
    for (at, option) in parts {
        let start = 20 + at;
        match option[0] {
            RECORD_ROUTE => {
                let pointer = usize::from(option.get(2).copied().unwrap_or(0));
                if pointer < 4 {
                    return Err(vec![byte(start + 2)]);
                }
                if pointer > option.len() {
                    continue;
                }
                if pointer + 3 > option.len() {
                    return Err((start..start + 3).map(byte).collect());
                }
                let slot = start + pointer - 1;
                filled.bytes[slot..slot + 4].copy_from_slice(&own.octets());
                filled.bytes[start + 2] += 4;
            }
            TIMESTAMP => {
                let pointer = usize::from(option.get(2).copied().unwrap_or(0));
                if option.len() < 4 || pointer < 5 {
                    return Err(vec![byte(start + 2)]);
                }
                if pointer > option.len() {
                    if option[3] >= 0xf0 {
                        return Err(vec![byte(start + 3)]);
                    }
                    filled.bytes[start + 3] += 0x10;
                    continue;
                }
                let entry = if option[3] & 15 == 0 { 4 } else { 8 };
                if pointer + entry - 1 > option.len() {
                    return Err((start..start + 3).map(byte).collect());
                }
                let slot = start + pointer - 1;
                match option[3] & 15 {
                    0 => filled.stamps.push(slot),
                    1 => {
                        filled.bytes[slot..slot + 4].copy_from_slice(&own.octets());
                        filled.stamps.push(slot + 4);
                    }
                    3 => {
                        let wanted = &option[pointer - 1..pointer + 3];
                        if !others.iter().chain([&own]).any(|address| address.octets() == wanted) {
                            continue;
                        }
                        filled.stamps.push(slot + 4);
                    }
                    _ => return Err(vec![byte(start + 3)]),
                }
                filled.bytes[start + 2] += byte(entry);
            }
            _ => {}
        }
    }
    match misfit {
        Some(at) => Err(vec![byte(20 + at), byte(20 + at + 1)]),
        None => Ok(filled),
    }
}
