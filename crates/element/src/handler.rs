// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handlers as methods.

use crate::cx::Cx;
use castanet_spec::{ArgValue, HandlerSpec};

/// Why a handler refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The value that was written, or a parameter of a read, is not one that the handler takes.
    #[error("{0}")]
    Value(String),
    /// The value is right, but the element cannot do as it says now.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for HandlerError {
    fn from(message: String) -> Self {
        HandlerError::Failed(message)
    }
}
impl From<&str> for HandlerError {
    fn from(message: &str) -> Self {
        HandlerError::Failed(message.to_string())
    }
}
impl From<HandlerError> for String {
    fn from(e: HandlerError) -> Self {
        e.to_string()
    }
}

/// The handlers of a class that are methods. [`#[handlers]`](crate::handlers) on an `impl` block writes this; `#[derive(Class)]`
/// writes one without any unless the class says `handlers`.
pub trait Handlers: Sized {
    /// Their declarations, in order.
    const METHODS: &'static [HandlerSpec];
    /// Calls the method of a read handler; none if no method has that name.
    fn read_method(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>>;
    /// Calls the method of a write handler; none if no method has that name.
    fn write_method(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>>;
}

/// Reads a value that was written to a handler, or the parameters of a read.
pub fn parse<T: ArgValue>(text: &str, cx: &Cx<'_>) -> Result<T, HandlerError> {
    // A NUL byte marks a message that no argument name is put before; here there is none.
    cx.with_args(|a| T::parse(text.trim(), a)).map_err(|e| HandlerError::Value(e.replace('\0', "")))
}
