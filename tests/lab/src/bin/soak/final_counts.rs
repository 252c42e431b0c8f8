// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counts of a router at the end of the run: its own ledger, and the kernel's counters of its devices.

use crate::network::{Frames, Node};
use crate::table::Table;
use castanet_lab::Output;
use serde_json::Value;

/// The number of frames that may be lost when a device comes up. For a moment, the kernel counts received frames
/// without passing them to packet sockets. A sender that waits for the link may send frames at that moment.
const PER_UP: u64 = 16;

/// The counts of one router.
pub struct FinalCounts {
    name: &'static str,
    code: Option<i32>,
    kernel: Frames,
    /// How often an end of one of the router's links was brought up.
    ups: u64,
    summary: Value,
    /// The messages that the router printed while it ran, one per line.
    pub messages: Vec<String>,
}

impl FinalCounts {
    /// Stops a router whose links are down, and reads its counts.
    pub fn close(node: Node) -> FinalCounts {
        let (name, kernel, ups) = (node.kind.name(), node.frames(), node.ups.get());
        let Output { code, stderr, .. } = node.process.stop();
        // The summary is the last JSON object, and the only one that spans several lines.
        let at = stderr.rfind("\n{\n").map_or(0, |at| at + 1);
        let (said, json) = stderr.split_at(at);
        let summary = serde_json::from_str(json).unwrap_or(Value::Null);
        let mut messages: Vec<String> = said.lines().map(str::to_string).collect();
        if summary.is_null() {
            messages.extend(json.lines().map(str::to_string));
        }
        FinalCounts { name, code, kernel, ups, summary, messages }
    }

    /// The number of packets in a section of the summary, for elements of a class, or for all elements if `class` is
    /// empty.
    fn rows(&self, section: &str, class: &str) -> u64 {
        let rows = self.summary[section].as_array().map(Vec::as_slice).unwrap_or_default();
        let rows = rows.iter().filter(|row| row["what"].as_str().is_some_and(|w| w.starts_with(class)));
        rows.filter_map(|row| row["packets"].as_u64()).sum()
    }

    fn each(&self, section: &str) -> u64 {
        let all = self.summary[section].as_object().into_iter().flatten();
        all.filter_map(|(_, n)| n.as_u64()).sum()
    }

    /// The number of packets that were dropped for one reason, or for all reasons.
    pub fn dropped(&self, reason: Option<&str>) -> u64 {
        let reasons = self.summary["drops"].as_object().into_iter().flatten();
        let reasons = reasons.filter(|(name, _)| reason.is_none_or(|r| r == *name));
        reasons.filter_map(|(_, by)| by.as_object()).flatten().filter_map(|(_, n)| n.as_u64()).sum()
    }

    /// The drop reasons with their numbers of packets, most frequent first.
    pub fn reasons(&self) -> String {
        let reasons = self.summary["drops"].as_object().into_iter().flatten();
        let mut all: Vec<(u64, &String)> =
            reasons.map(|(name, _)| (self.dropped(Some(name)), name)).collect();
        all.sort_by(|a, b| b.cmp(a));
        let texts: Vec<String> = all.iter().map(|(n, name)| format!("{name} {n}")).collect();
        texts.join(", ")
    }

    /// The number of frames that may be lost between the router's devices and its packet sockets.
    fn allowed(&self) -> u64 {
        self.ups * PER_UP
    }

    /// The number of received frames that were neither read nor counted as dropped; negative if more were read than
    /// received.
    fn unread(&self) -> i64 {
        let known = self.rows("in", "FromDevice") + self.each("system_drops");
        self.kernel.received.wrapping_sub(known) as i64
    }

    /// The number of packets that hot swaps lost: packets in removed elements, packets missing from the ledger, and
    /// frames never read.
    pub fn lost_by_swaps(&self) -> u64 {
        let unread = if self.is_explained() { 0 } else { self.unread().unsigned_abs() };
        self.dropped(Some("stopped")) + self.missing().unsigned_abs() + unread
    }

    /// Whether the unread frames are no more than may be lost when links come up.
    fn is_explained(&self) -> bool {
        u64::try_from(self.unread()).is_ok_and(|n| n <= self.allowed())
    }

    fn missing(&self) -> i64 {
        self.summary["missing"].as_i64().unwrap_or(i64::MAX)
    }

    /// The number of messages about panics, plus the number of packets dropped because of panics.
    pub fn panics(&self) -> u64 {
        let told = self.messages.iter().filter(|line| line.contains("panic")).count() as u64;
        told + self.dropped(Some("panicked"))
    }

    /// Whether the router printed a summary and ended with the expected exit code: 1 if its disk was full, otherwise 0.
    pub fn ended_well(&self) -> bool {
        let full = self.dropped(Some("write-failed")) > 0;
        let code = if full { Some(1) } else { Some(0) };
        self.code == code && !self.summary.is_null()
    }

    /// Adds the rows of this router to the table.
    pub fn show(&self, table: &mut Table) {
        let FinalCounts { name, kernel, .. } = self;
        let (entered, made) = (self.rows("in", ""), self.rows("made", ""));
        let (left, dropped, held) = (self.rows("out", ""), self.dropped(None), self.each("held"));
        table.row(
            format!("{name}: in + made = out + dropped + held"),
            format!("{entered} + {made} = {left} + {dropped} + {held}, {} missing", self.missing()),
            self.missing() == 0 && entered + made == left + dropped + held,
        );
        let (read, missed) = (self.rows("in", "FromDevice"), self.each("system_drops"));
        table.row(
            format!("{name}: frames that came = read + dropped by the kernel + lost as links came up"),
            format!(
                "{} = {read} + {missed} + {}, at most {}",
                kernel.received,
                self.unread(),
                self.allowed()
            ),
            self.is_explained(),
        );
        let sent = self.rows("out", "ToDevice");
        // Frames that the other end of the link did not accept.
        let lost = sent.wrapping_sub(kernel.sent) as i64;
        table.row(
            format!("{name}: frames sent = on the link + refused by its other end"),
            format!("{sent} = {} + {lost}, {} refused", kernel.sent, kernel.refused),
            (0..=i64::try_from(kernel.refused).unwrap_or(i64::MAX)).contains(&lost),
        );
    }
}
