// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that have come and were not looked at yet, cut into lines and data.

/// What [`Input::line`] finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// The beginning of one.
    Partial,
    /// The beginning of one that is too long; it is gone.
    TooLong,
}

/// Bytes that wait. Lines end by LF, CR, or CR LF.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Where the first that waits stands.
    at: usize,
    /// Up to where no line end was found, so that a line that comes byte by byte is not searched again and again.
    searched: usize,
    /// Whether the last line ended by a CR, to which a LF may belong that is still to come.
    after_cr: bool,
}

impl Input {
    /// Takes more.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.at
    }
    /// Whether none waits; the LF of a CR LF is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        match self.waiting() {
            [b'\n'] => self.after_cr,
            waiting => waiting.is_empty(),
        }
    }
    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
    /// Gives memory back that is not needed.
    pub fn tidy(&mut self) {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            (self.at, self.searched) = (0, 0);
            self.bytes.shrink_to(1 << 16);
        } else if self.at > 1 << 16 {
            self.bytes.drain(..self.at);
            (self.at, self.searched) = (0, 0);
        }
    }
    fn waiting(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
    /// Passes over a LF that belongs to the line before.
    fn settle(&mut self) {
        if let (true, Some(&b)) = (self.after_cr, self.waiting().first()) {
            self.after_cr = false;
            self.at += usize::from(b == b'\n');
        }
    }
    /// Says that the last line ended by a CR.
    pub fn set_after_cr(&mut self) {
        self.after_cr = true;
    }

    /// How far the next line goes, if its end is here.
    fn end(&mut self) -> Option<usize> {
        self.settle();
        let from = self.searched.max(self.at);
        let found = self.bytes.get(from..)?.iter().position(|b| matches!(b, b'\n' | b'\r'));
        self.searched = found.map_or(self.bytes.len(), |n| from + n);
        found.map(|n| from + n)
    }
    /// Passes over a line end.
    fn pass(&mut self, end: usize) {
        self.after_cr = self.bytes.get(end) == Some(&b'\r');
        self.at = end + 1;
    }

    /// The next line.
    pub fn line(&mut self, longest: usize) -> Line {
        match self.end() {
            Some(end) if end - self.at <= longest => {
                let line = self.bytes.get(self.at..end).unwrap_or_default().to_vec();
                self.pass(end);
                Line::Whole(line)
            }
            None if self.len() <= longest => Line::Partial,
            // Its end, if it is here, is found by whoever skips the rest.
            _ => {
                self.at = self.searched;
                Line::TooLong
            }
        }
    }
    /// Passes over the rest of a line; false if there is more of it to come.
    pub fn skip_line(&mut self) -> bool {
        let end = self.end();
        match end {
            Some(end) => self.pass(end),
            None => self.at = self.bytes.len(),
        }
        end.is_some()
    }

    /// Moves at most so many bytes to the end of `into`, and says how many.
    pub fn take(&mut self, most: u64, into: &mut Vec<u8>) -> u64 {
        self.settle();
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(self.len());
        into.extend_from_slice(self.waiting().get(..n).unwrap_or_default());
        self.at += n;
        n as u64
    }
    /// Passes over at most so many bytes, and says how many.
    pub fn skip(&mut self, most: u64) -> u64 {
        self.settle();
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(self.len());
        self.at += n;
        n as u64
    }
    /// The next byte.
    pub fn next(&mut self) -> Option<u8> {
        self.settle();
        let b = self.waiting().first().copied()?;
        self.at += 1;
        Some(b)
    }
}
