// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target that sends packets through an element of each class.

use super::settings::chosen;
use super::{at_most, load};
use crate::trace::checksum;
use std::fmt::Write as _;

/// Divides bytes into frames for `n` inputs.
///
/// A frame begins with two bytes. In the first byte, the low three bits select the input. The bit with value
/// 8 repeats the data to 8 times its length. The bits with values 16 and 32 make an IP header at offset 0 or
/// 14 consistent. The second byte is the length.
pub fn frames(mut data: &[u8], n: usize) -> Vec<Vec<Vec<u8>>> {
    let mut all = vec![Vec::new(); n];
    while let [what, length, rest @ ..] = data {
        let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        data = rest;
        let repeat = if what & 8 != 0 { 8 } else { 1 };
        let mut frame = frame.repeat(repeat);
        if what & 16 != 0 {
            mend(&mut frame);
        }
        if what & 32 != 0
            && let Some(ip) = frame.get_mut(14..)
        {
            mend(ip);
        }
        if let Some(list) = all.get_mut(usize::from(what & 7) % n.max(1)) {
            list.push(frame);
        }
        if all.iter().map(Vec::len).sum::<usize>() >= 64 {
            break;
        }
    }
    all
}

/// Sets the version, total length and checksum of an IPv4 header.
fn mend(ip: &mut [u8]) {
    let total = u16::try_from(ip.len()).unwrap_or(u16::MAX).to_be_bytes();
    if let [first, _, a, b, ..] = ip {
        *first = 0x40 | (*first & 15).max(5);
        [*a, *b] = total;
    }
    let header = usize::from(ip.first().copied().unwrap_or(0) & 15) * 4;
    let Some(header) = ip.get_mut(..header) else { return };
    if let Some(sum) = header.get_mut(10..12) {
        sum.fill(0);
    }
    let sum = checksum(&[header]).to_be_bytes();
    if let Some(place) = header.get_mut(10..12) {
        place.copy_from_slice(&sum);
    }
}

/// Returns a source of these frames for a configuration, or an Idle if there are no frames.
pub fn source(frames: &[Vec<u8>]) -> String {
    if frames.is_empty() {
        return "Idle".into();
    }
    let mut text = String::from("MemSource(");
    for f in frames {
        text.push_str("\\<");
        for b in f {
            let _ = write!(text, "{b:02x}");
        }
        text.push_str("> ");
    }
    let _ = write!(text, ", LIMIT {}, BURST 3)", frames.len());
    text
}

/// Elements that prepare packets for different classes. They are put between the source and the tested element.
const BEFORE: &[&str] = &[
    "",
    "-> MarkIPHeader(0)",
    "-> MarkIPHeader(14)",
    "-> Strip(14) -> CheckIPHeader",
    "-> CheckIPHeader",
    "-> MarkIPHeader(0) -> GetIPAddress(16) -> Paint(1)",
    "-> MarkIPHeader(14) -> Strip(14) -> GetIPAddress(12) -> SetTimestamp",
    "-> Strip(14) -> Unstrip(7) -> Paint(2)",
];

/// Sends frames through an element. The first two bytes of `data` select the class of the element, which must have
/// inputs. The third byte selects an item of `BEFORE` and the batch size. Frames follow.
pub fn elements(data: &[u8]) {
    let Some((setting, rest)) = chosen(at_most(data, 4096), |s| !s.inputs.is_empty()) else { return };
    let Some((how, rest)) = rest.split_first() else { return };
    let batch = [1, 2, 32, 256][usize::from(how >> 6)];
    let before = BEFORE[usize::from(how % 8)];
    let frames = frames(rest, setting.inputs.len());
    let from = |i: usize| format!("{} {before}", source(frames.get(i).map_or(&[], Vec::as_slice)));
    let text = setting.router(&setting.config, 1024, from);
    match load::router(&text, batch) {
        Ok(mut r) => load::run(&mut r),
        Err(e) => panic!("{text}\n{e}"),
    }
}
