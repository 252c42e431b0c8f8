// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts, and the ends of paths.

use super::{Code, Sender, position};
use crate::state::State;
use crate::step::{Counter, Exit, Operand, Step, Test, Value};

impl Code<'_> {
    // Counting.

    pub(super) fn add(&mut self, counter: Counter, by: Operand) {
        if !self.live {
            return;
        }
        // Numbers that are counted one after the other are one number in the program.
        let mut together = Vec::new();
        if let Some(&Step::Count { counter: before, by: same }) = self.steps.last()
            && same == by
        {
            together.clone_from(self.shared.counters.get(before as usize).unwrap_or(&Vec::new()));
            self.steps.pop();
        }
        together.push(counter);
        let counter = position(&mut self.shared.counters, together);
        self.step(Step::Count { counter, by });
    }

    /// Adds 1 to a count that the element declares.
    pub fn count(&mut self, name: &'static str) {
        self.count_at(name, 0, 1i64);
    }

    /// Adds to number `at` of a count that the element declares.
    pub fn count_at(&mut self, name: &'static str, at: u32, by: impl Into<Operand>) {
        self.changed = true;
        self.add(Counter::Own(self.element, name, at), by.into());
    }

    // Ends of paths.

    pub(super) fn exit(&mut self, exit: Exit) {
        self.step(Step::Exit(exit));
        self.live = false;
    }

    /// The packet enters the router at this element.
    pub fn enter(&mut self) {
        self.add(Counter::Entered(self.element), 1i64.into());
    }

    /// The packet continues at an output. If the output is not connected, it is dropped.
    pub fn next(&mut self, output: usize) {
        if !self.is_connected(output) {
            return self.drop(self.reasons.no_port);
        }
        let state = self.state.clone();
        self.exit(Exit::Next(output as u32, state));
    }

    /// The packet continues at an output, or is dropped for a reason if the output is not connected.
    pub fn next_or(&mut self, output: usize, reason: u16) {
        if self.is_connected(output) { self.next(output) } else { self.drop(reason) }
    }

    /// The element at user level processes the packet. Nothing may have been changed or counted before.
    pub fn up(&mut self) {
        self.up_as(false);
    }

    pub(super) fn up_as(&mut self, ticket: bool) {
        if self.live && self.changed {
            self.fail("passes a packet up after it has changed it");
        }
        let state = State { present: 0, ticket, ..self.before.clone() };
        self.exit(Exit::Up(self.input, state));
    }

    /// The packet is dropped, for the reason with this number.
    pub fn drop(&mut self, reason: u16) {
        self.add(Counter::Dropped(self.element, reason), 1i64.into());
        self.exit(Exit::Drop);
    }

    /// The packet leaves the router by a device, and 1 is added to the count `counted` that the element declares. If the device does not
    /// send it after all, it is added to the count `unsent` instead.
    pub fn send(&mut self, device: &str, counted: &'static str, unsent: &'static str) {
        let counters = vec![Counter::Own(self.element, counted, 0), Counter::Left(self.element)];
        let counter = position(&mut self.shared.counters, counters);
        let device = position(&mut self.shared.devices, device.to_string());
        let sender = Sender { device, element: self.element, sent: counted, unsent };
        position(&mut self.shared.senders, sender);
        let state = self.state.clone();
        self.exit(Exit::Send { device, counter, state });
    }

    /// Continues at the output with this number, one of the first `outputs`.
    pub fn next_of(&mut self, output: Value, outputs: usize) {
        let last = outputs.saturating_sub(1);
        for n in 0..last {
            let other = self.label();
            self.branch(output, Test::Differ, n as i64, other);
            self.next(n);
            self.bind(other);
        }
        self.next(last);
    }

    /// The host's own network stack gets the packet, as if the driver had passed it on. It counts as dropped for the reason with this number.
    pub fn host(&mut self, reason: u16) {
        let counter = position(&mut self.shared.counters, vec![Counter::Dropped(self.element, reason)]);
        let state = self.state.clone();
        self.exit(Exit::Host { counter, state });
    }
}
