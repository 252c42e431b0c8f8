// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses one of several pull inputs. The element's notifier depends on that input alone.

use super::own_note::OwnNote;
use castanet_element::prelude::*;

/// The chosen input, and the element's own notifier. The notifier follows only the notifiers upstream of this input and
/// of the input `also`. If pulling tasks slept on the notifiers of all inputs, packets on other inputs would wake these
/// tasks in vain.
#[derive(Default)]
pub(super) struct Selection {
    input: Option<usize>,
    /// A further input, from which packets may be pulled whichever input is chosen.
    also: Option<usize>,
    signals: Vec<Signal>,
    inputs: usize,
    note: OwnNote,
}

impl Selection {
    /// Chooses an input. A number that is not an input chooses none.
    pub fn new(input: i32, inputs: usize) -> Selection {
        let input = usize::try_from(input).ok().filter(|&i| i < inputs);
        Selection { input, inputs, ..Selection::default() }
    }
    /// Sets a further input, from which packets may be pulled whichever input is chosen.
    pub fn also(self, input: Option<usize>) -> Selection {
        Selection { also: input, ..self }
    }
    /// Returns the number of the chosen input; -1 for none.
    pub fn number(&self) -> i64 {
        self.input.and_then(|i| i64::try_from(i).ok()).unwrap_or(-1)
    }

    /// Requests the notifiers. Returns whether a path upstream leads back to this element.
    pub fn initialise(&mut self, cx: &mut InitCx<'_>) -> bool {
        self.signals = (0..self.inputs).map(|i| cx.upstream(i)).collect();
        let own = cx.note(Capability::EmptyNotifier);
        let returns = own.is_some_and(|own| cx.is_woken_by(own));
        self.note.initialise(self.input.is_some(), cx);
        returns
    }
    /// Chooses another input.
    pub fn choose(&mut self, input: i32, cx: &mut Cx<'_>) {
        self.input = usize::try_from(input).ok().filter(|&i| i < self.inputs);
        self.found_empty(cx);
    }
    /// Pulls from the chosen input.
    #[inline]
    pub fn pull(&self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.pull_from(self.input, max, into, cx);
    }
    /// Pulls from an input.
    #[inline]
    pub fn pull_from(&self, input: Option<usize>, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        if let Some(input) = input {
            cx.pull(input, max, into);
        }
        if into.len() == before && max > 0 {
            self.found_empty(cx);
        }
    }
    fn has_something(&self, cx: &Cx<'_>) -> bool {
        let inputs = self.input.into_iter().chain(self.also);
        inputs.filter_map(|i| self.signals.get(i)).any(|s| cx.is_on(s))
    }
    /// Turns the notifier on if there may be packets. Called when a notifier upstream has turned on.
    pub fn woken(&self, cx: &mut Cx<'_>) {
        self.note.look(self.has_something(cx), cx);
    }
    fn found_empty(&self, cx: &mut Cx<'_>) {
        self.note.found_empty(|cx| self.has_something(cx), cx);
    }
}
