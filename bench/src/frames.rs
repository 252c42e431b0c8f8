// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames to forward: UDP, 60 to 64 bytes.

use castanet_element::Random;
use castanet_wire::{Ipv4Header, checksum};
use std::fmt;

/// The traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// All packets of a source go to one next hop. The two sources send to different interfaces.
    One,
    /// Each packet goes to one of four next hops at random, two on each interface.
    Four,
}

impl Traffic {
    /// All traffic patterns.
    pub const ALL: [Traffic; 2] = [Traffic::One, Traffic::Four];

    /// The paint of each source's packets, usually the number of its interface. With [`Traffic::Four`], packets of
    /// a source may leave by either interface. A packet that leaves by the interface of its paint causes a
    /// redirect. To avoid that, `Four` uses the paints 3 and 4, which no interface has.
    pub fn colors(self) -> [u8; 2] {
        match self {
            Traffic::One => [1, 2],
            Traffic::Four => [3, 4],
        }
    }
    /// The name of the pattern.
    pub fn name(self) -> &'static str {
        match self {
            Traffic::One => "one",
            Traffic::Four => "four",
        }
    }
    /// The pattern with this name.
    pub fn named(name: &str) -> Option<Traffic> {
        Traffic::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Traffic::One => "one next hop",
            Traffic::Four => "four next hops at random",
        })
    }
}

/// The four networks behind the gateways, each by the first byte of its addresses.
const BEHIND: [u8; 4] = [3, 4, 6, 9];
/// The number of frames that each source repeats.
const FRAMES: u8 = 64;

/// The frames of a source: 60 to 64 bytes without padding, all forwardable.
pub fn frames(traffic: Traffic, source: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(8, &format!("frames {source}"));
    let one = |i: u8| {
        let network = match traffic {
            Traffic::One => {
                if source == 0 {
                    3
                } else {
                    4
                }
            }
            Traffic::Four => BEHIND.get(usize::from(i % 4)).copied().unwrap_or(3),
        };
        let len = 60 + u16::from(i % 5);
        let host = random.next_u32();
        let side = if source == 0 { 1 } else { 2 };
        let mut frame = Vec::with_capacity(64);
        frame.extend(if source == 0 { crate::path::ETHER[0] } else { crate::path::ETHER[1] });
        frame.extend([2, 0, side, 0, 0, i]);
        frame.extend([8, 0]);
        let src = u32::from_be_bytes([side, 0, 0, 10 + i]);
        let dst = u32::from(network) << 24 | host & 0x00ff_ffff;
        let mut header = Ipv4Header::new(17, src, dst, len - 14, 64);
        header.id.set(u16::from(i));
        header.checksum.set(checksum::ipv4_header20_checksum(header.as_array()));
        frame.extend(header.to_bytes());
        frame.extend([0, 53, 0, 53]);
        frame.extend((len - 34).to_be_bytes());
        frame.extend([0, 0]);
        frame.resize(usize::from(len), i);
        frame
    };
    (0..FRAMES).map(one).collect()
}
