// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a hot swap failed.

use castanet_element::{CallError, ElementError};

/// Why a router was not replaced, why there is no plan of it, or why no package was loaded. The old router goes on.
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
    /// The configuration or the package is not used: what is wrong with it, for users.
    #[error("{0}")]
    Refused(String),
    /// State did not move from an element of the old router to one of the new router.
    #[error("While hot-swapping state into '{element}'{}:\n  {why}", from(.before))]
    State {
        /// The declaration of the new element.
        element: String,
        /// The name of the old one, if it is another.
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

/// Why an element did not take over from another one.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The new element refused.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// One of the two panicked.
    #[error("{0}")]
    Panicked(CallError),
}
