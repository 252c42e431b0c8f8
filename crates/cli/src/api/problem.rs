// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a request cannot be answered.

use serde_json::{Value, json};

/// An error: the HTTP status, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The error message, without a line end.
    pub message: String,
}

impl Problem {
    /// Makes an error.
    pub fn new(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into().trim_end().to_string() }
    }
    /// The router has ended, or cannot be reached.
    pub fn gone(message: impl Into<String>) -> Problem {
        Problem::new(503, message)
    }
    /// Whether the router cannot be reached.
    pub fn is_gone(&self) -> bool {
        self.status == 503
    }
    /// The error as JSON.
    pub fn json(&self) -> Value {
        json!({ "error": { "status": self.status, "message": self.message } })
    }
}
