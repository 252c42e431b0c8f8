// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of hot swaps.

use castanet_element::{CallError, ElementError};

/// Why a hot swap, the plan of a hot swap, or the loading of a package failed. The old router continues.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// The program has set no loader, so it cannot read configurations while the router runs.
    #[error("the configuration cannot be swapped")]
    NoLoader,
    /// The router has stopped.
    #[error("the router has stopped")]
    Stopped,
    /// Another hot swap has not ended yet.
    #[error("another hot swap is under way")]
    Busy,
    /// The new configuration has no elements, so nothing in the configuration could ever stop the router.
    #[error("configuration has no elements")]
    Empty,
    /// The configuration or the package was refused. The text tells users the reason.
    #[error("{0}")]
    Refused(String),
    /// An element of the new router could not take over the state of an element of the old router.
    #[error("While hot-swapping state into '{element}'{}:\n  {why}", from(.before))]
    State {
        /// The declaration of the new element: `name :: Class`.
        element: String,
        /// The name of the old element. None if it is the same as that of the new element.
        before: Option<String>,
        /// The reason of the failure.
        why: HandoverError,
    },
}

fn from(before: &Option<String>) -> String {
    before.as_ref().map_or(String::new(), |name| format!(" from '{name}'"))
}

impl From<String> for SwapError {
    fn from(text: String) -> Self {
        SwapError::Refused(text)
    }
}

/// Why an element could not take over from another element.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The new element returned an error.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The old or the new element panicked.
    #[error("{0}")]
    Panicked(CallError),
}
