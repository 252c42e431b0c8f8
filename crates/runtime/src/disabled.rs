// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element that stands in the place of another one that has panicked, or is being replaced. It drops all packets.

use castanet_element::{Action, Cx, Element, ElementError, HandlerError, Lifecycle, Object, Verdict};
use castanet_packet::{Batch, Packet};
use castanet_spec::{HandlerFlags, Reason};
use castanet_typed::{Typed, TypedAction, TypedElement};
use std::any::Any;

/// The element that replaces an element that has panicked. It drops all packets.
pub(crate) struct Disabled {
    /// The number of inputs of the element.
    pub inputs: usize,
}

impl Object for Disabled {
    fn read_handler(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Option<Result<String, HandlerError>> {
        None
    }
    fn write_handler(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Option<Result<(), HandlerError>> {
        None
    }
    fn own_handlers(&self) -> Vec<(String, HandlerFlags)> {
        Vec::new()
    }
    fn each_count(&mut self, _: &mut castanet_element::CountVisitor<'_>) {}
    fn take_over_from(&mut self, _: &mut dyn Any, _: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    fn take_state_from(&mut self, _: &mut dyn Any, _: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
}

impl Lifecycle for Disabled {}

/// An element for the place of another one, while that is being replaced.
pub(crate) fn idle_element() -> TypedElement {
    Typed::new(Box::new(Disabled { inputs: 0 }))
}
/// An action for the place of another one, while that is being replaced.
pub(crate) fn idle_action() -> TypedAction {
    Typed::new(Box::new(Disabled { inputs: 0 }))
}

impl Action for Disabled {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Drop(Reason::Panicked)
    }
}

impl Element for Disabled {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.drop_all(batch, Reason::Panicked);
    }
    // Pulls all packets and drops them. If they stayed upstream, the notifier there would stay on, and the task that
    // pulls would get turn after turn without moving a packet.
    fn pull(&mut self, _: usize, max: usize, _: &mut Batch, cx: &mut Cx<'_>) {
        for input in 0..self.inputs {
            let mut batch = cx.spare_batch();
            cx.pull(input, max, &mut batch);
            cx.drop_all(&mut batch, Reason::Panicked);
            cx.return_batch(batch);
        }
    }
}
