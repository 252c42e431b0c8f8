// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resize: adds or removes bytes at both ends of packets.

use castanet_element::prelude::*;

/// Adds or removes bytes at the front and at the end of packets.
///
/// HEAD and TAIL are the numbers of bytes to add at the front and at the end; negative numbers remove bytes. Bytes that
/// were stripped from the front earlier reappear there; all other new bytes are zero. If HEAD and TAIL remove more
/// bytes than a packet has, the packet passes empty. A packet that would become too long is dropped. HEAD is applied
/// before TAIL.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with another length.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> Resize(-14, 4) -> CheckLength(50) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Resize", offload = none, ports = "1/1", processing = "a/a", packets = "any/changed")]
#[class(reconfigure = keeps, workers = replicate, drops(NoHeadroom, TooLong), depends = packet)]
pub struct Resize {
    args: Args,
}

/// Arguments of Resize.
#[derive(Args)]
pub struct Args {
    /// Number of bytes to add at the front; negative to remove bytes.
    #[arg(default = 0, handler = "rw")]
    head: i32,
    /// Number of bytes to add at the end; negative to remove bytes.
    #[arg(default = 0, handler = "rw")]
    tail: i32,
}

/// Returns the absolute value of HEAD or TAIL.
fn bytes(n: i32) -> usize {
    n.unsigned_abs() as usize
}

impl Action for Resize {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Args { head, tail } = self.args;
        if head < 0 {
            p.strip(bytes(head).min(p.len()));
        } else if !p.unstrip(bytes(head)) {
            return Verdict::Drop(Reason::NoHeadroom);
        }
        if tail < 0 {
            p.take_end(bytes(tail).min(p.len()));
        } else if tail > 0 && !p.put(bytes(tail)) {
            return Verdict::Drop(Reason::TooLong);
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// The slow twin of Resize.
    fn resized(data: &[u8], head: i32, tail: i32) -> Vec<u8> {
        let front = vec![0; usize::try_from(head).unwrap_or(0)];
        let off = usize::try_from(-head).unwrap_or(0).min(data.len());
        let mut all = [&front, &data[off..]].concat();
        let left = all.len() as i64 + i64::from(tail);
        all.resize(usize::try_from(left).unwrap_or(0), 0);
        all
    }

    #[test]
    fn every_length() {
        let data: Vec<u8> = (1..=60).collect();
        for head in [-61, -60, -59, -14, -1, 0, 1, 27, 28, 29, 200] {
            for tail in [-61, -60, -14, -1, 0, 1, 4, 2000] {
                let mut kit = Kit::<Resize>::new(&format!("{head}, {tail}")).unwrap();
                for len in [0, 1, 13, 14, 15, 59, 60] {
                    let mut p = packet(&data[..len]);
                    let mut copy = p.share().unwrap();
                    let out = kit.act([p]);
                    assert_eq!(out[0].1.data(), resized(&data[..len], head, tail), "{head} {tail} of {len}");
                    assert_eq!(copy.data_mut(), &data[..len], "a copy stays as it was");
                }
            }
        }
    }

    #[test]
    fn stripped_bytes_come_back() {
        let mut kit = Kit::<Resize>::new("-3").unwrap();
        let p = kit.act([packet(b"abcdef")]).remove(0).1;
        kit.write("head", "2").unwrap();
        kit.write("tail", "-1").unwrap();
        assert_eq!(kit.act([p])[0].1.data(), b"bcde");
        assert_eq!((kit.read("head").unwrap().as_str(), kit.read("tail").unwrap().as_str()), ("2", "-1"));
    }

    #[test]
    fn limits() {
        for (config, reason) in [("70000", Reason::NoHeadroom), ("0, 70000", Reason::TooLong)] {
            for n in [config.to_string(), config.replace("70000", "2147483647")] {
                let mut kit = Kit::<Resize>::new(&n).unwrap();
                assert!(kit.act([packet(b"abc"), packet(b"")]).is_empty());
                assert_eq!(kit.dropped(reason), 2, "{n}");
            }
        }
        let mut kit = Kit::<Resize>::new("-2147483648, -2147483648").unwrap();
        assert!(kit.act([packet(b"abc")])[0].1.is_empty());
        assert!(Kit::<Resize>::new("x").is_err());
    }
}
