// SPDX-License-Identifier: MIT OR Apache-2.0
//! LLRPCs: calls of an element by number, with binary data. LLRPCs are older than handlers, and only those of `Switch`
//! are still in use. This module implements each LLRPC as a read or write of a handler.

use super::Rules;
use super::command::Call;
use crate::access::{Access, Refusal, shown};
use crate::code;
use castanet_element::spec::{Origin, bytes};

/// An LLRPC. Its data is a 32-bit integer in the byte order of the machine.
struct Llrpc {
    number: u32,
    class: &'static str,
    /// The handler that is read or written.
    handler: &'static str,
    writes: bool,
}

const ALL: &[Llrpc] = &[
    Llrpc { number: 0x4004_C005, class: "Switch", handler: "switch", writes: false },
    Llrpc { number: 0x8004_4006, class: "Switch", handler: "switch", writes: true },
];

/// Finds the LLRPC that a call names as `element#number`, and the full name of its handler.
fn find(call: &Call, rules: &Rules, access: &mut Access) -> Result<(&'static Llrpc, String), Refusal> {
    let name = shown(&call.name);
    let syntax = || Refusal(code::SYNTAX, format!("Syntax error in LLRPC '{name}'"));
    let (element, number) = call.name.split_once('#').ok_or_else(syntax)?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(syntax());
    }
    if access.remote().has_ended() {
        return Err(Refusal(code::NO_ROUTER, "No router installed".into()));
    }
    if !access.has_element(element) {
        return Err(Refusal(code::NO_ELEMENT, format!("No element named '{}'", shown(element))));
    }
    if rules.readonly {
        return Err(Refusal(code::PERMISSION, format!("Permission denied for '{name}'")));
    }
    let unknown = || Refusal(code::UNIMPLEMENTED, format!("Cannot call LLRPC '{name}' remotely"));
    let known = u32::from_str_radix(number, 16).ok();
    let found = ALL.iter().find(|l| Some(l.number) == known).filter(|_| rules.proxy.is_none());
    let found = found.ok_or_else(unknown)?;
    let class = access.readable(&format!("{element}.class"), None).and_then(|t| access.read(&t, ""));
    match class {
        Ok(c) if c == found.class => Ok((found, format!("{element}.{}", found.handler))),
        _ => Err(unknown()),
    }
}

/// Whether a call will be refused independently of its data.
pub fn is_refused(call: &Call, rules: &Rules, access: &mut Access) -> bool {
    find(call, rules, access).is_err()
}

/// Executes an LLRPC. Returns the text of the reply, and the data that follows it.
///
/// # Errors
/// When there is no such LLRPC, its data has the wrong length, or the handler refuses.
pub fn answer(
    call: &Call,
    data: &[u8],
    rules: &Rules,
    from: Origin,
    access: &mut Access,
) -> Result<(String, String), Refusal> {
    let (found, handler) = find(call, rules, access)?;
    let name = shown(&call.name);
    let failed = |text: String| Refusal(code::LLRPC, format!("LLRPC '{name}' error:\n{text}"));
    let given = <[u8; 4]>::try_from(data).map(i32::from_ne_bytes);
    let value = match (found.writes, given) {
        (true, Ok(value)) => {
            let t = access.writable(&handler, None, rules.readonly, from)?;
            access.write(from, &t, &value.to_string())?;
            value
        }
        (false, given) if given.is_ok() || data.is_empty() => {
            let t = access.readable(&handler, None)?;
            let text = access.read(&t, "")?;
            text.trim().parse().map_err(|_| failed(format!("'{handler}' is no 32-bit integer")))?
        }
        _ => return Err(failed(format!("expected 4 bytes of data, got {}", data.len()))),
    };
    Ok((format!("LLRPC '{name}' OK"), bytes::decode(&value.to_ne_bytes()).into_owned()))
}
