// SPDX-License-Identifier: MIT OR Apache-2.0
//! STOP and END_CALL: what a source does once after LIMIT packets.

use castanet_element::prelude::*;

/// The arguments of a source that can stop the driver or write a handler after LIMIT packets.
#[derive(Args)]
#[args(at_most_one(stop, end_call))]
pub struct EndArgs {
    /// Whether to stop the driver after LIMIT packets.
    #[arg(keyword, default = false)]
    pub(super) stop: bool,
    /// A handler to write after LIMIT packets.
    #[arg(keyword)]
    pub(super) end_call: Option<HandlerRef>,
}

/// Whether a source has carried out STOP or END_CALL, so that it does so only once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ended(bool);

impl Ended {
    /// Whether STOP or END_CALL was carried out.
    pub(super) fn get(self) -> bool {
        self.0
    }
    /// Carries out STOP: stops the driver if `stop`, unless this was done before.
    pub(crate) fn stop(&mut self, stop: bool, cx: &mut Cx<'_>) {
        if stop && !std::mem::replace(&mut self.0, true) {
            cx.stop(1);
        }
    }
    /// Carries out STOP or END_CALL, whichever is given, unless this was done before.
    pub(super) fn carry_out(&mut self, end: &EndArgs, cx: &mut Cx<'_>) {
        if std::mem::replace(&mut self.0, true) {
            return;
        }
        match &end.end_call {
            Some(call) => cx.call(call),
            None if end.stop => cx.stop(1),
            None => {}
        }
    }
    /// Called after the settings or the count have changed. If the limit is not reached, or no longer reached, STOP and
    /// END_CALL apply again.
    pub(crate) fn resume(&mut self, is_reached: bool) {
        self.0 &= is_reached;
    }
    /// Continues from the state of the old source (hot swap). `is_reached` is true if the new limit is reached.
    pub(crate) fn go_on_from(&mut self, old: Ended, is_reached: bool) {
        self.0 = old.0 && is_reached;
    }
}
