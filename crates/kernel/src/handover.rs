// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record that precedes a frame on its way to user level.
//!
//! It has words of four bytes in the order of the processor:
//!
//! 1. the mark of the router, a random number that nobody on the network knows;
//! 2. the generation of the programs (upper half) and the number of the [`Point`] at which the packet continues;
//! 3. the end of the packet, if it was shortened;
//! 4. two words of a ticket, if the packet has one;
//! 5. the annotation words that the compiler does not know at this point;
//! 6. the mark, changed by the length of the record.
//!
//! The driver keeps the record before the frame, as metadata. If the driver has no metadata, the record is the start of the
//! frame.

use crate::compile::Point;
use crate::order::Ticket;
use crate::state::WORDS;

/// The number of points that a record can name.
pub(crate) const POINTS: usize = 1 << 16;

/// The second word of a record.
pub(crate) fn place(generation: u16, point: u32) -> u32 {
    u32::from(generation) << 16 | point & 0xffff
}

/// The last word of records of this length.
pub(crate) fn last(mark: u32, length: u32) -> u32 {
    !mark ^ length
}

/// The length of the longest record in bytes.
pub const LONGEST: usize = 4 * (6 + WORDS);

/// The length of a record with this many annotation words.
pub(crate) fn length(shortened: bool, ticket: bool, words: usize) -> u32 {
    (12 + 4 * usize::from(shortened) + 8 * usize::from(ticket) + 4 * words) as u32
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where the packet continues.
    pub point: &'a Point,
    /// The end of the packet, from the start of the frame; `None` if it ends with the frame.
    pub end: Option<u32>,
    /// The packet's ticket.
    pub ticket: Option<Ticket>,
    /// All annotation bytes.
    pub annotations: [u8; crate::state::ANNOTATIONS],
    /// The length of the record in bytes.
    pub length: usize,
}

/// The points of the programs whose records may still arrive.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// The mark of the router's records.
    pub mark: u32,
    /// For each generation of programs its points by their numbers, the newest generation first. `None` stands for a point
    /// whose element is gone.
    pub generations: Vec<(u16, Vec<Option<Point>>)>,
}

/// The result of looking for a record before a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// No record: the frame comes from a program without records.
    Nothing,
    /// A record that cannot be read, or whose element is gone.
    Foreign,
    /// A record as metadata before the frame.
    Before(Record<'a>),
    /// A record as the start of the frame.
    Inside(Record<'a>),
}

impl Points {
    /// Reads the record that begins with `bytes`.
    fn read(&self, bytes: &[u8]) -> Option<Record<'_>> {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |i: usize| words.get(i).map(|w| u32::from_ne_bytes(*w));
        if word(0)? != self.mark {
            return None;
        }
        let (generation, number) = ((word(1)? >> 16) as u16, word(1)? & 0xffff);
        let (_, points) = self.generations.iter().find(|g| g.0 == generation)?;
        let point = points.get(number as usize)?.as_ref()?;
        let mut at = 2;
        let end = if point.state.shortened {
            at += 1;
            Some(word(2)?)
        } else {
            None
        };
        let mut ticket = None;
        if point.state.ticket {
            ticket = Some(Ticket { index: word(at)?, number: word(at + 1)? });
            at += 2;
        }
        let mut annotations = point.state.annotations.map(Option::unwrap_or_default);
        for i in point.state.dynamic_words() {
            let (all, _) = annotations.as_chunks_mut::<4>();
            *all.get_mut(i)? = *words.get(at)?;
            at += 1;
        }
        let length = 4 * (at + 1);
        (word(at)? == last(self.mark, length as u32)).then_some(Record {
            point,
            end,
            ticket,
            annotations,
            length,
        })
    }

    /// Reads the record of a received frame. `before` are the bytes before the frame, as far as the buffer goes.
    pub fn find(&self, before: &[u8], frame: &[u8]) -> Found<'_> {
        let word = |w: &[u8; 4]| u32::from_ne_bytes(*w);
        let length = before.last_chunk().map(|w| word(w) ^ last(self.mark, 0));
        if let Some(length) = length.filter(|n| *n as usize <= LONGEST) {
            let start = before.len().checked_sub(length as usize);
            let record = start.and_then(|s| before.get(s..)).and_then(|b| self.read(b));
            return record.filter(|r| r.length == length as usize).map_or(Found::Foreign, Found::Before);
        }
        match frame.first_chunk().map(word) {
            Some(w) if w == self.mark => self.read(frame).map_or(Found::Foreign, Found::Inside),
            _ => Found::Nothing,
        }
    }
}
