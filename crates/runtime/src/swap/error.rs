// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a hot swap failed.

use castanet_element::{CallError, ElementError};

/// Why a hot swap, its plan, or the loading of a package failed. The old router continues.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// The program cannot read configurations while the router runs.
    #[error("the configuration cannot be swapped")]
    NoLoader,
    /// The router has stopped.
    #[error("the router has stopped")]
    Stopped,
    /// Another hot swap is under way.
    #[error("another hot swap is under way")]
    Busy,
    /// The new configuration has no elements. A router without elements could not even be stopped by its configuration.
    #[error("configuration has no elements")]
    Empty,
    /// The configuration or the package was refused. The text tells users why.
    #[error("{0}")]
    Refused(String),
    /// State could not be moved from an element of the old router to an element of the new router.
    #[error("While hot-swapping state into '{element}'{}:\n  {why}", from(.before))]
    State {
        /// The declaration of the new element.
        element: String,
        /// The name of the old element, if it differs.
        before: Option<String>,
        /// The reason.
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

/// Why an element did not take over from another element.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The new element refused.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The old or the new element panicked.
    #[error("{0}")]
    Panicked(CallError),
}
