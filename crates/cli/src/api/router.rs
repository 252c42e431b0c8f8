// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls to the router that the API serves: in the same process, or over its control socket.

use super::problem::Problem;
use crate::ctl::{Connection, Failure};
use crate::observe::{Element, Handlers, Inside};
use castanet_control::client::ClientError;
use castanet_control::{Client, code};
use castanet_element::remote::Remote;
use castanet_element::{CallError, Missing};
use castanet_graph::Graph;
use castanet_lang::bytes::encode;
use castanet_runtime::Running;
use castanet_spec::Origin;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// A router.
#[derive(Clone)]
pub enum Router {
    /// A router of this process.
    Near(Arc<Running>),
    /// A router that is reached over its control socket. Each session is a connection of its own, so that the router may
    /// be restarted meanwhile.
    Far(Connection),
}

/// A conversation with a router.
pub enum Session {
    /// With a router of this process.
    Near(Arc<Running>),
    /// Over a control socket.
    Far(Client),
}

impl Router {
    /// Begins a session.
    ///
    /// # Errors
    /// When the router cannot be reached.
    pub fn open(&self) -> Result<Session, Problem> {
        match self {
            Router::Near(running) => Ok(Session::Near(running.clone())),
            Router::Far(connection) => connection.open().map(Session::Far).map_err(|e| match e {
                Failure::Client(e) => e.into(),
                e => Problem::gone(e.to_string()),
            }),
        }
    }
    /// Whether a router of this process has ended. A router that is reached over a socket may be restarted, so it has not.
    pub fn has_ended(&self) -> bool {
        matches!(self, Router::Near(running) if running.has_ended())
    }
}

impl Session {
    /// Reads a handler with parameters.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    pub fn read_with(&mut self, handler: &str, parameters: &str) -> Result<String, Problem> {
        match self {
            Session::Far(client) => Ok(client.read_text(handler, parameters)?),
            Session::Near(running) => {
                let (element, handler) = parts(handler);
                Ok(running.read(element, handler, parameters)?)
            }
        }
    }

    /// Writes a handler, and returns its answer. In this process, the write has the rights of a client with the token;
    /// over a control socket, it has those of the connection.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<String, Problem> {
        match self {
            Session::Far(client) => {
                let text = client.write(handler, &encode(value))?;
                // The first line reports success.
                Ok(text.split_once('\n').map_or(String::new(), |t| t.1.to_string()))
            }
            Session::Near(running) => {
                let (element, handler) = parts(handler);
                Ok(running.write(Origin::Authorised, element, handler, value)?)
            }
        }
    }

    /// Returns the graph of the running configuration.
    ///
    /// # Errors
    /// When the router cannot be reached.
    pub fn graph(&mut self) -> Result<Graph, Problem> {
        match self {
            Session::Near(running) => {
                let shared = running.current().ok_or(CallError::from(Missing::Router))?;
                Ok(shared.graph.clone())
            }
            Session::Far(client) => {
                let (text, flat) = (client.read_text("config", "")?, client.read_text("flatconfig", "")?);
                Ok(super::graph::received(&text, &flat))
            }
        }
    }

    /// Returns a number that changes with each hot swap.
    ///
    /// # Errors
    /// When the router cannot be reached.
    pub fn configuration_version(&mut self) -> Result<u64, Problem> {
        match self {
            Session::Near(running) => Ok(running.swaps()),
            Session::Far(client) => {
                let mut hash = DefaultHasher::new();
                client.read_text("flatconfig", "")?.hash(&mut hash);
                Ok(hash.finish())
            }
        }
    }
}

fn parts(handler: &str) -> (Option<&str>, &str) {
    handler.rsplit_once('.').map_or((None, handler), |(element, handler)| (Some(element), handler))
}

impl Handlers for Session {
    type Error = Problem;

    fn is_refusal(e: &Problem) -> bool {
        !e.is_gone()
    }
    fn read(&mut self, handler: &str) -> Result<String, Problem> {
        self.read_with(handler, "")
    }
    fn elements(&mut self) -> Result<Vec<Element>, Problem> {
        match self {
            Session::Near(running) => Ok(Inside(running).elements()?),
            Session::Far(client) => Ok(Handlers::elements(client)?),
        }
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

impl From<ClientError> for Problem {
    fn from(e: ClientError) -> Problem {
        match e {
            ClientError::Refused { code, text } => match code {
                code::NO_ELEMENT | code::NO_HANDLER => Problem::new(404, text),
                code::PERMISSION => Problem::new(403, text),
                code::TOO_BIG => Problem::new(413, text),
                code::NO_ROUTER => Problem::gone(text),
                code::SYNTAX | code::UNIMPLEMENTED => Problem::new(400, text),
                _ => Problem::new(422, text),
            },
            e => Problem::gone(e.to_string()),
        }
    }
}
