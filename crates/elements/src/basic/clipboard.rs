// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clipboard: copies bytes from some packets into others.

use castanet_element::prelude::*;

/// Copies bytes from packets on input 0 and writes them into packets on input 1, at the same offsets.
///
/// The bytes of each packet on input 0 replace those copied before. If a range extends beyond the end of a packet, only
/// the part inside the packet is copied or written. A byte of a range is not written until a packet on input 0 has
/// contained it.
///
/// # Ports
/// Input 0: packets to copy from. Output 0: the packets from input 0. Input 1: packets to write into. Output 1: the
/// packets from input 1 with the copied bytes. The two paths (0 to 0, 1 to 1) are agnostic: each may be push or pull.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<0a000001 0a000002>, LIMIT 1) -> [0] c :: Clipboard(0/4) [0] -> Discard;
/// InfiniteSource(DATA \<00000000 0b000003>, LIMIT 5, STOP true) -> [1] c [1] -> Print -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Clipboard", offload = none, ports = "2/2", processing = "a/a", flow = "#/#", packets = "any/same")]
#[class(reconfigure = keeps)]
#[class(workers = exclusive, takes_state = "the bytes on the clipboard", build, lifecycle, effects(looks))]
pub struct Clipboard {
    args: Args,
    /// The copied bytes of all ranges, one range after the other; `None` for a byte that has not been copied yet.
    bytes: Vec<Option<u8>>,
}

/// Arguments of Clipboard.
#[derive(Args)]
pub struct Args {
    /// The ranges of bytes to copy, as `OFFSET/LENGTH`, counted from the start of the packet.
    #[arg(rest)]
    range: Vec<Range>,
}

impl Build for Clipboard {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let all = args.range.iter().map(|r| usize::from(r.length)).sum();
        Ok(Clipboard { args, bytes: vec![None; all] })
    }
}

/// A range of bytes in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    offset: u16,
    length: u16,
}

impl ArgValue for Range {
    const TYPE: &'static str = "OFFSET/LENGTH";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Range, ValueError> {
        let (offset, length) = text.split_once('/').ok_or("expected OFFSET/LENGTH")?;
        let number = |t: &str| u16::parse(t.trim(), cx);
        Ok(Range { offset: number(offset)?, length: number(length)? })
    }
}

impl Show for Range {
    fn show(&self) -> String {
        format!("{}/{}", self.offset, self.length)
    }
}

/// Returns the part of a range that is inside a packet.
fn inside(range: Range, data: &[u8]) -> std::ops::Range<usize> {
    let start = usize::from(range.offset).min(data.len());
    start..(start + usize::from(range.length)).min(data.len())
}

impl Clipboard {
    fn copy(&mut self, data: &[u8]) {
        let mut place = self.bytes.as_mut_slice();
        for &range in &self.args.range {
            let (these, others) = place.split_at_mut(usize::from(range.length).min(place.len()));
            for (to, from) in these.iter_mut().zip(data.get(inside(range, data)).unwrap_or_default()) {
                *to = Some(*from);
            }
            place = others;
        }
    }
    fn paste(&self, p: &mut Packet) {
        let mut place = self.bytes.as_slice();
        for &range in &self.args.range {
            let (these, others) = place.split_at(usize::from(range.length).min(place.len()));
            let part = inside(range, p.data());
            // `data_mut` copies a shared buffer, so call it only if there is something to write.
            if !part.is_empty() && these.iter().any(Option::is_some) {
                let there = p.data_mut().get_mut(part).unwrap_or_default();
                for (to, from) in there.iter_mut().zip(these) {
                    *to = from.unwrap_or(*to);
                }
            }
            place = others;
        }
    }
    #[inline]
    fn pass(&mut self, port: usize, p: &mut Packet) {
        match port {
            0 => self.copy(p.data()),
            _ => self.paste(p),
        }
    }
}

impl Element for Clipboard {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter_mut() {
            self.pass(port, p);
        }
        cx.forward(port, batch);
    }
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        cx.pull(port, max, into);
        for p in into.iter_mut().skip(before) {
            self.pass(port, p);
        }
    }
}

impl Lifecycle for Clipboard {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        if old.args.range == self.args.range {
            self.bytes.clone_from(&old.bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn kit(config: &str) -> Kit<Clipboard> {
        Kit::with_ports(config, 2, 2).unwrap()
    }

    #[test]
    fn every_length() {
        let from: Vec<u8> = (100..160).collect();
        for config in ["10/3", "0/60", "0/1, 59/1", "4/0", "20/10, 25/10", "50/65535", "65535/65535", ""] {
            let ranges: Vec<(usize, usize)> = config
                .split(", ")
                .filter_map(|r| r.split_once('/'))
                .map(|(o, l)| (o.parse().unwrap(), l.parse().unwrap()))
                .collect();
            for source in [0, 1, 11, 12, 25, 59, 60] {
                let mut kit = kit(config);
                let out = kit.push(0, [packet(&from[..source])]);
                assert_eq!((out[0].0, out[0].1.data()), (0, &from[..source]));
                for len in 0..=60 {
                    let is_there =
                        |i: usize| i < source && ranges.iter().any(|&(o, l)| (o..o + l).contains(&i));
                    let want: Vec<u8> = (0..len).map(|i| if is_there(i) { from[i] } else { 7 }).collect();
                    let out = kit.push(1, [packet(&vec![7; len])]);
                    assert_eq!((out[0].0, out[0].1.data()), (1, &want[..]), "{config} {source} {len}");
                }
            }
        }
    }

    #[test]
    fn the_last_packet_counts_and_copies_stay() {
        let mut kit = kit("0/2");
        let mut p = packet(b"xyz");
        let copy = p.share().unwrap();
        let out = kit.push(1, [p]);
        assert_eq!((out[0].1.data(), out[0].1.is_shared()), (&b"xyz"[..], true), "nothing is there yet");
        kit.push(0, [packet(b"abc"), packet(b"d")]);
        assert_eq!(kit.push(1, out.into_iter().map(|o| o.1))[0].1.data(), b"dbz");
        assert_eq!(copy.data(), b"xyz");
    }

    #[test]
    fn paths_may_be_pulled() {
        for n in [1, 2, 3, 32] {
            let mut kit = kit("1/1");
            kit.supply(0, packet(b"abc"));
            (0..3).for_each(|_| kit.supply(1, packet(b"xyz")));
            let pulled = |kit: &mut Kit<Clipboard>, port| {
                kit.pull(port, n).iter().map(|p| p.data().to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(pulled(&mut kit, 0), [b"abc"]);
            assert_eq!(pulled(&mut kit, 1), vec![b"xbz"; n.min(3)]);
            assert!(pulled(&mut kit, 0).is_empty());
        }
    }

    #[test]
    fn errors() {
        for (config, error) in [
            ("3", "expected OFFSET/LENGTH"),
            ("x/1", "invalid number"),
            ("0/-1", "must be positive"),
            ("0/65536", "out of range, bound 65535"),
        ] {
            assert_eq!(Kit::<Clipboard>::with_ports(config, 2, 2).err().unwrap(), [error], "{config}");
        }
    }
}
