// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that ends with a terminator line.

use super::input::Input;
use crate::Limits;

/// Collects lines up to a terminator line, with their line ends. Blanks may follow the text of the terminator.
pub struct Until {
    terminator: Vec<u8>,
    data: Vec<u8>,
    /// The start of the current line.
    start: usize,
    /// Whether the last line ended with CR. A LF that follows belongs to that line end.
    after_cr: bool,
    /// Whether the limit was exceeded. If so, only the current line is stored.
    over: bool,
    /// Whether the current line is too long to be the terminator.
    long: bool,
}

impl Until {
    pub fn new(terminator: &[u8]) -> Until {
        let terminator = terminator.trim_ascii_end().to_vec();
        Until { terminator, data: Vec::new(), start: 0, after_cr: false, over: false, long: false }
    }
    /// The size of the buffer.
    pub fn held(&self) -> usize {
        self.data.capacity()
    }
    /// The data, unless it exceeded the limit.
    pub fn data(&self) -> Option<&[u8]> {
        (!self.over).then_some(&self.data)
    }

    /// Consumes input. Returns true after the terminator.
    pub fn feed(&mut self, input: &mut Input, limits: &Limits) -> bool {
        while let Some(b) = input.next() {
            let belongs = std::mem::take(&mut self.after_cr) && b == b'\n';
            if belongs {
                if !self.over {
                    self.data.push(b);
                    self.start = self.data.len();
                }
            } else if matches!(b, b'\n' | b'\r') {
                let line = self.data.get(self.start..).unwrap_or_default();
                if !self.long && line.trim_ascii_end() == self.terminator {
                    self.data.truncate(self.start);
                    if b == b'\r' {
                        input.set_after_cr();
                    }
                    return true;
                }
                (self.long, self.after_cr) = (false, b == b'\r');
                if self.over {
                    self.data.clear()
                } else {
                    self.data.push(b)
                }
                self.start = self.data.len();
            } else if !self.over || self.data.len() <= limits.line {
                self.data.push(b);
            } else {
                self.long = true;
            }
            if !self.over && self.data.len() > limits.data {
                self.over = true;
                self.data = self.data.split_off(self.start);
                self.start = 0;
                if self.data.len() > limits.line {
                    (self.long, self.data) = (true, Vec::new());
                }
            }
        }
        false
    }
}
