// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target that sends frames through the IP router of TOCS 2000, Figure 8.

use super::elements::{frames, source};
use super::{at_most, load};
use std::sync::OnceLock;

/// Returns three pieces of the text of conf/ip-router-trace.click: before, between and after its two sources. `Discard`
/// replaces the elements that write files.
fn pieces() -> &'static [String] {
    static PIECES: OnceLock<Vec<String>> = OnceLock::new();
    PIECES.get_or_init(|| {
        let mut text = include_str!("../../../conf/ip-router-trace.click").to_string();
        let mut cut = |class: &str, with: &str| {
            while let Some(at) = text.find(class) {
                let end = text.get(at..).and_then(|t| t.find(')')).map_or(text.len(), |e| at + e + 1);
                text.replace_range(at..end, with);
            }
        };
        cut("ToDump(", "Discard");
        cut("FromDump(", "\0");
        text.split('\0').map(ToString::to_string).collect()
    })
}

/// Sends frames through the router. The first byte of the input selects the batch size. Frames for both interfaces
/// follow.
pub fn router(data: &[u8]) {
    let Some((&how, rest)) = at_most(data, 8192).split_first() else { return };
    let [start, middle, end] = pieces() else { panic!("the configuration has not two sources") };
    let frames = frames(rest, 2);
    let from = |i: usize| source(frames.get(i).map_or(&[], Vec::as_slice));
    let text = format!("{start}{}{middle}{}{end}\nFuse(4096);", from(0), from(1));
    match load::router(&text, [1, 2, 32, 256][usize::from(how & 3)]) {
        Ok(mut r) => {
            load::run(&mut r);
            assert_eq!(r.waiting(), 0);
        }
        Err(e) => panic!("{text}\n{e}"),
    }
}
