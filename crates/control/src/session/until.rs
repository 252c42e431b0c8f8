// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that ends by a line of its own.

use super::input::Input;
use crate::Limits;

/// Lines up to a terminator. They are kept with their ends, the terminator is not; what follows its text must be blank.
pub struct Until {
    terminator: Vec<u8>,
    data: Vec<u8>,
    /// Where the line begins that is not whole yet.
    start: usize,
    /// Whether the last line ended by a CR, to which a LF may belong.
    after_cr: bool,
    /// Whether there were more than are taken; then only the present line is kept.
    over: bool,
    /// Whether the present line is too long for a terminator.
    long: bool,
}

impl Until {
    pub fn new(terminator: &[u8]) -> Until {
        let terminator = terminator.trim_ascii_end().to_vec();
        Until { terminator, data: Vec::new(), start: 0, after_cr: false, over: false, long: false }
    }
    /// Bytes of memory.
    pub fn held(&self) -> usize {
        self.data.capacity()
    }
    /// What came, if it was not too much.
    pub fn data(&self) -> Option<&[u8]> {
        (!self.over).then_some(&self.data)
    }

    /// Takes what has come; true when the terminator has.
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
