// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handlers that are methods of an element.

use crate::class::Object;
use crate::cx::Cx;
use castanet_spec::{ArgValue, HandlerSpec, ValueError};

/// Why a handler refused a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The value that was written, or a parameter of a read, is not valid for the handler.
    #[error("{0}")]
    Value(String),
    /// The value is valid, but the element cannot apply it now.
    #[error("{0}")]
    Failed(String),
    /// The value would be added under a key for which a different value already exists.
    #[error("{0}")]
    Exists(String),
}

/// Lets handlers return the error of a text that is not a valid value.
impl From<ValueError> for HandlerError {
    fn from(e: ValueError) -> Self {
        HandlerError::Value(e.into())
    }
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

/// The handlers of a class that are implemented as methods; by default there are none.
/// [`#[handlers]`](crate::handlers) on an `impl` block implements this trait, and `#[derive(Class)]`
/// implements it without handlers unless the class says `handlers`.
#[allow(unused_variables)]
pub trait Handlers: Sized {
    /// The declarations of these handlers, in order.
    const METHODS: &'static [HandlerSpec] = &[];
    /// The declarations of the [indexed](castanet_spec::ClassSpec::indexed) handlers, in order. An element has several
    /// handlers for each of these declarations.
    const INDEXED: &'static [HandlerSpec] = &[];
    /// Returns the number of handlers that entry `i` of [`INDEXED`](Handlers::INDEXED) stands for.
    fn count_of(&self, i: usize) -> usize {
        0
    }
    /// Calls the method of a read handler. Returns none if no method has that name.
    fn read_method(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>> {
        None
    }
    /// Calls the method of a write handler. Returns none if no method has that name.
    fn write_method(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>> {
        None
    }
}

/// Appends the names and flags of all handlers that the indexed handlers of `e` stand for.
pub fn list_indexed<E: Handlers>(e: &E, into: &mut Vec<(String, &'static str)>) {
    for (i, h) in E::INDEXED.iter().enumerate() {
        into.extend((0..e.count_of(i)).map(|n| (format!("{}{n}", h.name), h.flags)));
    }
}

/// Parses a value that was written to a handler, or the parameters of a read.
pub fn parse<T: ArgValue>(text: &str, cx: &Cx<'_>) -> Result<T, HandlerError> {
    cx.with_args(|a| T::parse(text.trim(), a)).map_err(HandlerError::from)
}

/// Reads a handler of an element: one that its class declares, or one of its [own](Object::own_handlers).
pub fn read<E: Object + ?Sized>(
    e: &mut E,
    handler: &str,
    parameters: &str,
    cx: &mut Cx<'_>,
) -> Result<String, HandlerError> {
    match e.read_handler(handler, parameters, cx) {
        Some(value) => value,
        None => e.read_dynamic(handler, parameters, cx),
    }
}

/// Writes a handler of an element: one that its class declares, or one of its [own](Object::own_handlers).
pub fn write<E: Object + ?Sized>(
    e: &mut E,
    handler: &str,
    value: &str,
    cx: &mut Cx<'_>,
) -> Result<(), HandlerError> {
    match e.write_handler(handler, value, cx) {
        Some(done) => done,
        None => e.write_dynamic(handler, value, cx),
    }
}

/// Why a handler could not be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// There is nothing to call: `no 'x' read handler`, `no element named 'x'`.
    Missing(String),
    /// The element is running already, further up the call stack.
    Busy(String),
    /// The handler refused the call.
    Failed(String),
    /// The handler refused the call, because something already exists where the value would be added.
    Exists(String),
    /// The caller has no right to call the handler.
    Denied(String),
}

impl From<HandlerError> for CallError {
    fn from(e: HandlerError) -> Self {
        match e {
            HandlerError::Exists(text) => CallError::Exists(text),
            HandlerError::Value(text) | HandlerError::Failed(text) => CallError::Failed(text),
        }
    }
}

/// Lets a handler call other handlers and return their errors.
impl From<CallError> for HandlerError {
    fn from(e: CallError) -> Self {
        match e {
            CallError::Exists(text) => HandlerError::Exists(text),
            e => HandlerError::Failed(e.to_string()),
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::Missing(t)
            | CallError::Busy(t)
            | CallError::Failed(t)
            | CallError::Exists(t)
            | CallError::Denied(t) => f.write_str(t),
        }
    }
}
