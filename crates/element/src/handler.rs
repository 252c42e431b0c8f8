// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handlers that are methods of an element.

use crate::class::Object;
use crate::cx::Cx;
use castanet_spec::{ArgValue, HandlerFlags, HandlerSpec, ValueError};

/// Why a handler refused a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The value that was written, or a parameter of a read, is not valid for the handler.
    #[error("{0}")]
    Value(String),
    /// The value is valid, but the element cannot use it in its present state.
    #[error("{0}")]
    Failed(String),
    /// The value cannot be added, because its key already exists with another value.
    #[error("{0}")]
    Exists(String),
}

/// Lets a handler use `?` on code that parses text as a value.
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

/// The handlers of a class that are methods. By default, there are none. [`#[handlers]`](crate::handlers) on an `impl`
/// block implements this trait. If the class does not say `handlers`, `#[derive(Class)]` implements it without methods.
#[allow(unused_variables)]
pub trait Handlers: Sized {
    /// The declarations of the handlers that have a fixed name, in the order of the methods.
    const METHODS: &'static [HandlerSpec] = &[];
    /// The declarations of the [indexed](castanet_spec::ClassSpec::indexed) handlers, in the order of the methods. Each
    /// declaration stands for several handlers with numbered names.
    const INDEXED: &'static [HandlerSpec] = &[];
    /// Returns how many handlers an element has for declaration `i` in [`INDEXED`](Handlers::INDEXED).
    fn count_of(&self, i: usize) -> usize {
        0
    }
    /// Calls the method of a read handler. Returns none if no method implements `handler`.
    fn read_method(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>> {
        None
    }
    /// Calls the method of a write handler. Returns none if no method implements `handler`.
    fn write_method(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>> {
        None
    }
}

/// Appends names and flags of all indexed handlers of element `e`.
pub fn list_indexed<E: Handlers>(e: &E, into: &mut Vec<(String, HandlerFlags)>) {
    for (i, h) in E::INDEXED.iter().enumerate() {
        into.extend((0..e.count_of(i)).map(|n| (format!("{}{n}", h.name), h.flags)));
    }
}

/// Parses a value that was written to a handler, or the parameters of a read.
pub fn parse<T: ArgValue>(text: &str, cx: &Cx<'_>) -> Result<T, HandlerError> {
    cx.with_args(|a| T::parse(text.trim(), a)).map_err(HandlerError::from)
}

/// Reads a handler that the class of an element declares, or one of the element's [own handlers](Object::own_handlers).
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

/// Writes a handler that the class of an element declares, or one of the element's [own
/// handlers](Object::own_handlers).
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
