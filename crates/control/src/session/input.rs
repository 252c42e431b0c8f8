// SPDX-License-Identifier: MIT OR Apache-2.0
//! Received bytes that are not parsed yet, split into lines and data.

/// A result of [`Input::line`].
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its line end.
    Whole(Vec<u8>),
    /// An incomplete line.
    Partial,
    /// The line is too long. The part of it that has arrived is discarded.
    TooLong,
}

/// Buffered input. Lines end by LF, CR, or CR LF.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// The index of the first unparsed byte.
    at: usize,
    /// There is no unparsed line end before this index. The search for the next line end starts at this index, so a
    /// line that arrives byte by byte is searched only once.
    searched: usize,
    /// Whether the last line ended with CR. A LF that follows belongs to that line end.
    after_cr: bool,
}

impl Input {
    /// Appends received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    /// The number of unparsed bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.at
    }
    /// Whether there are no unparsed bytes, apart from the LF of a CR LF.
    pub fn is_empty(&self) -> bool {
        match self.waiting() {
            [b'\n'] => self.after_cr,
            waiting => waiting.is_empty(),
        }
    }
    /// The size of the buffer.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
    /// Removes parsed bytes from the buffer, and frees memory that is no longer needed.
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
    /// Skips a LF that belongs to the previous line end.
    fn skip_lf(&mut self) {
        if let (true, Some(&b)) = (self.after_cr, self.waiting().first()) {
            self.after_cr = false;
            self.at += usize::from(b == b'\n');
        }
    }
    /// Records that the last line ended with CR.
    pub fn set_after_cr(&mut self) {
        self.after_cr = true;
    }

    /// The index of the next line end, if it has arrived.
    fn end(&mut self) -> Option<usize> {
        self.skip_lf();
        let from = self.searched.max(self.at);
        let found = self.bytes.get(from..)?.iter().position(|b| matches!(b, b'\n' | b'\r'));
        self.searched = found.map_or(self.bytes.len(), |n| from + n);
        found.map(|n| from + n)
    }
    /// Advances past the line end at index `end`.
    fn pass(&mut self, end: usize) {
        self.after_cr = self.bytes.get(end) == Some(&b'\r');
        self.at = end + 1;
    }

    /// Removes and returns the next line, of at most `longest` bytes.
    pub fn line(&mut self, longest: usize) -> Line {
        match self.end() {
            Some(end) if end - self.at <= longest => {
                let line = self.bytes.get(self.at..end).unwrap_or_default().to_vec();
                self.pass(end);
                Line::Whole(line)
            }
            None if self.len() <= longest => Line::Partial,
            // The caller skips the rest of the line with `skip_line`.
            _ => {
                self.at = self.searched;
                Line::TooLong
            }
        }
    }
    /// Skips the rest of a line. Returns false if its end has not arrived.
    pub fn skip_line(&mut self) -> bool {
        let end = self.end();
        match end {
            Some(end) => self.pass(end),
            None => self.at = self.bytes.len(),
        }
        end.is_some()
    }

    /// Moves at most `most` bytes to the end of `into`. Returns their number.
    pub fn take(&mut self, most: u64, into: &mut Vec<u8>) -> u64 {
        self.skip_lf();
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(self.len());
        into.extend_from_slice(self.waiting().get(..n).unwrap_or_default());
        self.at += n;
        n as u64
    }
    /// Skips at most `most` bytes. Returns their number.
    pub fn skip(&mut self, most: u64) -> u64 {
        self.skip_lf();
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(self.len());
        self.at += n;
        n as u64
    }
    /// The next byte.
    pub fn next(&mut self) -> Option<u8> {
        self.skip_lf();
        let b = self.waiting().first().copied()?;
        self.at += 1;
        Some(b)
    }
}
