// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits on a count of AggregateCounter. When the count reaches a limit, the element freezes, stops the driver, or
//! calls a handler.

use castanet_element::prelude::*;

/// A number, and the handler to write when a count reaches it.
#[derive(Clone, Debug)]
pub struct CallAt {
    at: u64,
    call: HandlerRef,
}

impl ArgValue for CallAt {
    const TYPE: &'static str = "number and handler";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (number, call) = text.split_at_checked(end).unwrap_or((text, ""));
        Ok(CallAt { at: u64::parse(number, cx)?, call: HandlerRef::parse(call, cx)? })
    }
}

/// Parses a number and a handler; `None` for an empty text.
pub fn call_or_none(text: &str, cx: &Cx<'_>) -> Result<Option<CallAt>, HandlerError> {
    match text.trim() {
        "" => Ok(None),
        call => castanet_element::handler::parse(call, cx).map(Some),
    }
}

/// The limits on one of the two counts: on the number of aggregates, or on the total count. There is at most one limit
/// for freezing, one for stopping and one for calling a handler. A limit is removed when it is reached.
#[derive(Default)]
pub struct Limits {
    /// The count at which the element freezes.
    pub freeze: Option<u64>,
    /// The count at which the driver is to stop.
    pub stop: Option<u64>,
    /// The count at which a handler is called, and that handler.
    pub call: Option<CallAt>,
}

impl Limits {
    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        self.freeze.is_none() && self.stop.is_none() && self.call.is_none()
    }
    /// Removes each limit that `n` has reached. If the limit of `call` is one of them, writes the handler of `call`.
    /// Returns whether `freeze` was reached, and whether `stop` was reached.
    #[inline]
    pub fn reached(&mut self, n: u64, cx: &mut Cx<'_>) -> (bool, bool) {
        let due = |at: &mut Option<u64>| at.take_if(|at| *at <= n).is_some();
        let (freeze, stop) = (due(&mut self.freeze), due(&mut self.stop));
        if let Some(c) = self.call.take_if(|c| c.at <= n) {
            cx.call(&c.call);
        }
        (freeze, stop)
    }
    /// Removes limits that `n` has already reached, without acting on them (hot swap).
    pub fn pass(&mut self, n: u64) {
        self.freeze.take_if(|at| *at <= n);
        self.stop.take_if(|at| *at <= n);
        self.call.take_if(|c| c.at <= n);
    }
    /// Returns the limit and the handler of `call` as text.
    pub fn show_call(&self) -> String {
        self.call.as_ref().map_or(String::new(), |c| format!("{} {}", c.at, Show::show(&c.call)))
    }
}
