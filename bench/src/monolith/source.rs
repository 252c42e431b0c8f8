// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames that the hand-written forwarder receives.

use super::ETHER_LEN;
use castanet_element::Random;
use castanet_packet::{DEFAULT_HEADROOM, Packet};

/// The number of bytes that the fast copy of a frame always copies. Longer frames do not use the fast copy.
const LINE: usize = 64;

/// Frames in memory that are sent repeatedly.
pub(super) struct Source {
    pub(super) frames: Vec<Frame>,
    pub(super) order: AnyOrder,
}

pub(super) struct Frame {
    line: [u8; LINE],
    len: usize,
    /// The complete frame if it is longer than [`LINE`]; otherwise empty.
    long: Vec<u8>,
}

/// Selects the next frame.
pub(super) trait Order {
    type Frames: ?Sized;
    fn next<'a>(&mut self, frames: &'a Self::Frames) -> Option<&'a Frame>;
}

/// Selects the frames in sequence, again and again.
pub(super) struct InTurn(usize);

impl Order for InTurn {
    type Frames = [Frame];
    #[inline(always)]
    fn next<'a>(&mut self, frames: &'a [Frame]) -> Option<&'a Frame> {
        let frame = frames.get(self.0);
        if frame.is_some() {
            self.0 += 1;
            return frame;
        }
        self.0 = 1;
        frames.first()
    }
}

/// Selects frames at random, with one random number for each frame.
impl Order for Random {
    type Frames = [Frame];
    #[inline(always)]
    fn next<'a>(&mut self, frames: &'a [Frame]) -> Option<&'a Frame> {
        frames.get(self.below(frames.len() as u64) as usize)
    }
}

/// The number of frames that `AtRandom` selects from. An index into them needs six random bits.
pub(super) const SIXTY_FOUR: usize = 64;

/// Selects from 64 frames at random.
pub(super) struct AtRandom {
    pub(super) random: Random,
    /// The unused bits of the last random number, with one more set bit above them as an end mark.
    bits: u64,
}

impl Order for AtRandom {
    type Frames = [Frame; SIXTY_FOUR];
    #[inline(always)]
    fn next<'a>(&mut self, frames: &'a [Frame; SIXTY_FOUR]) -> Option<&'a Frame> {
        // A random number gives ten indices of six bits.
        if self.bits <= 1 {
            self.bits = self.random.next_u64() >> 4 | 1 << 60;
        }
        let i = self.bits as usize % SIXTY_FOUR;
        self.bits >>= 6;
        frames.get(i)
    }
}

pub(super) enum AnyOrder {
    InTurn(InTurn),
    AtRandom(AtRandom),
}

impl Source {
    pub(super) fn new(frames: &[Vec<u8>], random: Option<Random>) -> Source {
        let frame = |f: &Vec<u8>| {
            let mut line = [0; LINE];
            line.iter_mut().zip(f).for_each(|(to, from)| *to = *from);
            Frame { line, len: f.len(), long: if f.len() > LINE { f.clone() } else { Vec::new() } }
        };
        let order = match random {
            Some(random) => AnyOrder::AtRandom(AtRandom { random, bits: 0 }),
            None => AnyOrder::InTurn(InTurn(0)),
        };
        Source { frames: frames.iter().map(frame).collect(), order }
    }
}

/// Returns a new packet that begins with a copy of the next frame, and the length of that frame.
#[inline(always)]
pub(super) fn receive_one<O: Order>(frames: &O::Frames, order: &mut O) -> Option<(Packet, usize)> {
    let frame = order.next(frames)?;
    if frame.len > LINE {
        return Some((Packet::copy_of(&frame.long)?, frame.len));
    }
    let mut p = Packet::with_headroom(DEFAULT_HEADROOM, LINE)?;
    let to = p.data_mut().first_chunk_mut::<LINE>()?;
    // The IP header is read immediately afterwards, in words that start at byte 14. The processor can forward
    // a stored word to a read only if one store contains the whole word. So stores start at byte 14 as well.
    copy16::<0>(to, &frame.line)?;
    copy16::<ETHER_LEN>(to, &frame.line)?;
    copy16::<{ ETHER_LEN + 16 }>(to, &frame.line)?;
    copy16::<{ ETHER_LEN + 32 }>(to, &frame.line)?;
    copy16::<{ LINE - 16 }>(to, &frame.line)?;
    Some((p, frame.len))
}

/// Copies 16 bytes at an offset with one store.
#[inline(always)]
fn copy16<const AT: usize>(to: &mut [u8; LINE], from: &[u8; LINE]) -> Option<()> {
    let word = u128::from_ne_bytes(*from.split_at(AT).1.first_chunk()?);
    *to.split_at_mut(AT).1.first_chunk_mut()? = word.to_ne_bytes();
    Some(())
}
