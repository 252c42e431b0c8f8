// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of handler calls.

use crate::handler::HandlerError;

/// Why a handler call failed. The texts are those that existing clients of Click expect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is nothing to call.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The handler exists, but cannot be called now.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The caller has no right to call the handler with this full name.
    #[error("permission denied for '{0}'")]
    Denied(String),
    /// The read handler with this full name takes no parameters, but the call has some.
    #[error("read handler '{0}' does not take parameters")]
    Parameters(String),
    /// The element panicked during the call.
    #[error("{element} panicked: {message}")]
    Panicked {
        /// The name, class and place of the element.
        element: String,
        /// The message of the panic.
        message: String,
    },
    /// The handler refused the call.
    #[error(transparent)]
    Refused(#[from] HandlerError),
}

/// What a handler call did not find. Handlers have their full names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The router has stopped.
    #[error("the router has stopped")]
    Router,
    /// There is no element with this name.
    #[error("no element named '{0}'")]
    Element(String),
    /// The element exists, but not on the worker that received the call.
    #[error("no element '{0}' here")]
    Replica(String),
    /// There is no read handler with this name.
    #[error("no '{0}' read handler")]
    Read(String),
    /// There is no write handler with this name.
    #[error("no '{0}' write handler")]
    Write(String),
    /// The handler with this name can only be written, but was to be read.
    #[error("'{0}' is a write handler")]
    OnlyWrite(String),
}

/// Why a handler cannot be called at the moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The element with this name is already running, further up the call stack.
    #[error("element '{0}' is busy")]
    Element(String),
    /// The caller has no access to other elements, so it cannot read the handler with this name.
    #[error("handler '{0}' cannot be read from here")]
    Read(String),
    /// The caller has no access to other elements, so it cannot write the handler with this name.
    #[error("handler '{0}' cannot be written from here")]
    Write(String),
    /// Handler calls are nested too deep.
    #[error("handler '{handler}': more than {limit} calls one within the other")]
    Nested {
        /// The name of the handler that was not called.
        handler: String,
        /// The greatest number of nested calls.
        limit: u32,
    },
    /// The worker that has the element has stopped.
    #[error("the worker has stopped")]
    Worker,
}

/// Lets a handler that calls other handlers use `?` on their errors.
impl From<CallError> for HandlerError {
    fn from(e: CallError) -> Self {
        match e {
            CallError::Refused(HandlerError::Exists(text)) => HandlerError::Exists(text),
            e => HandlerError::Failed(e.to_string()),
        }
    }
}
