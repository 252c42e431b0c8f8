// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collect: keeps the frames that a configuration sends, so that they can be compared.

use castanet_element::prelude::*;
use std::fmt::Write as _;

/// Collects frames as text.
///
/// # Ports
/// Input 0: packets.
///
/// # Example
/// ```click
/// MemSource(LIMIT 1) -> Collect;
/// ```
#[derive(Class)]
#[class(name = "Collect", ports = "1/0", processing = "h/h", packets = "any/", workers = exclusive, handlers)]
#[class(drops(Consumed), ends(Consumed))]
pub struct Collect {
    text: String,
}

#[handlers]
impl Collect {
    /// The frames in hexadecimal, one per line.
    #[read]
    fn frames(&self) -> Table {
        Table(self.text.clone())
    }
}

impl Element for Collect {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            for b in p.data() {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "{b:02x}");
            }
            self.text.push('\n');
            cx.drop(p, Reason::Consumed);
        }
    }
}
