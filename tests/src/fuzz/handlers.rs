// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for handlers: texts written to them, and parameters of reads.

use super::settings::chosen;
use super::{at_most, load};

/// Whether a handler accesses files or processes: `kill`, `cat` and `catq` of a script, and handlers that write a file.
pub fn reaches_outside(handler: &str) -> bool {
    matches!(handler, "kill" | "cat" | "catq") || handler.starts_with("write_") && handler.ends_with("file")
}

/// Calls handlers of an element, then runs its router. The first two bytes of the input select the class. Each line
/// that follows is a call: a byte that selects a handler, and a text.
pub fn handlers(data: &[u8]) {
    let Some((setting, rest)) = chosen(at_most(data, 2048), |_| true) else { return };
    let frame = |_| {
        "MemSource(\\<000000000001 000000000002 0800 4500001c 00000000 40117cd2 7f000001 7f000001 0035 0035 0008 0000>, \
         LIMIT 4, BURST 1) -> MarkIPHeader(14)"
            .to_string()
    };
    let text = setting.router(&setting.config, 512, frame);
    let mut router = match load::router(&text, 32) {
        Ok(r) => r,
        Err(e) => panic!("{text}\n{e}"),
    };
    let Some(x) = router.find("x") else { return };
    let own = setting.spec.all_handlers().map(|h| (h.name, h.writable()));
    let standard =
        [("handlers", false), ("config", false), ("tickets", true), ("ports", false), ("none", true)];
    let known: Vec<_> = own.chain(standard).filter(|h| !reaches_outside(h.0)).collect();
    for line in rest.split(|&b| b == b'\n').take(32) {
        let Some((&which, text)) = line.split_first() else { continue };
        let Some(&(name, writable)) = known.get(usize::from(which & 0x7f) % known.len().max(1)) else {
            continue;
        };
        let text = String::from_utf8_lossy(text);
        // A large burst is legal, but sending billions of packets takes too long.
        let text = if name.starts_with("burst") && text.len() > 3 { "7".into() } else { text };
        let _ = if writable && which < 0x80 {
            router.write(Some(x), name, &text)
        } else {
            router.read(Some(x), name, &text).map(|_| ())
        };
    }
    load::run(&mut router);
}
