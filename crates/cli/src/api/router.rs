// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls to the router that the API serves.
//!
//! The router may be in the same process ([`near`](super::near)) or be reached over a control socket
//! ([`far`](super::far)). Only the latter needs to know all classes, so that minimal drivers do not contain them.

use super::problem::Problem;
use crate::observe::{Element, Handlers};
use castanet_element::{CallError, Missing};
use castanet_graph::Graph;
use castanet_spec::ClassSpec;
use std::sync::Arc;

/// A router, with which sessions can be begun.
pub trait Reach: Send + Sync {
    /// Begins a session.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn open(&self) -> Result<Box<dyn Conversation>, Problem>;
    /// Whether the router has ended for good.
    fn has_ended(&self) -> bool;
}

/// A router.
pub type Router = Arc<dyn Reach>;

/// A conversation with a router.
pub trait Conversation {
    /// Reads a handler with parameters.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    fn read_with(&mut self, handler: &str, parameters: &str) -> Result<String, Problem>;
    /// Writes a handler, and returns its answer. In this process, the write has the rights of a client with the token;
    /// over a control socket, it has those of the connection.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    fn write(&mut self, handler: &str, value: &str) -> Result<String, Problem>;
    /// Returns the graph of the running configuration.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn graph(&mut self) -> Result<Graph, Problem>;
    /// Returns a number that changes with each hot swap.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn configuration_version(&mut self) -> Result<u64, Problem>;
    /// Returns the elements of the configuration.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn elements(&mut self) -> Result<Vec<Element>, Problem>;
    /// Returns the declaration of an element's class. None if this program does not have the class.
    fn spec(&self, element: &str, class: &str) -> Option<&'static ClassSpec>;
}

/// A conversation with a router.
pub type Session = Box<dyn Conversation>;

impl Handlers for Session {
    type Error = Problem;

    fn is_refusal(e: &Problem) -> bool {
        !e.is_gone()
    }
    fn read(&mut self, handler: &str) -> Result<String, Problem> {
        self.read_with(handler, "")
    }
    fn elements(&mut self) -> Result<Vec<Element>, Problem> {
        self.as_mut().elements()
    }
}

impl From<CallError> for Problem {
    fn from(e: CallError) -> Problem {
        let text = e.to_string();
        match e {
            CallError::Missing(Missing::Router) => Problem::gone(text),
            CallError::Missing(Missing::OnlyWrite(_)) => Problem::new(405, text),
            CallError::Missing(_) => Problem::new(404, text),
            CallError::Busy(_) => Problem::new(409, text),
            CallError::Denied(_) => Problem::new(403, text),
            CallError::Parameters(_) => Problem::new(400, text),
            CallError::Panicked { .. } => Problem::new(500, text),
            CallError::Refused(_) => Problem::new(422, text),
        }
    }
}
