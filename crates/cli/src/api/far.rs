// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router that is reached over its control socket.

use super::problem::Problem;
use super::router::{Conversation, Reach};
use crate::ctl::kinds::Kinds;
use crate::ctl::{Connection, Failure};
use crate::observe::{Element, Handlers};
use castanet_control::client::ClientError;
use castanet_control::{Client, code};
use castanet_graph::Graph;
use castanet_lang::bytes::encode;
use castanet_spec::ClassSpec;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A router that is reached over its control socket. Each session is a connection of its own, so that the router may be
/// restarted meanwhile.
pub struct Far(pub Connection);

impl Reach for Far {
    fn open(&self) -> Result<Box<dyn Conversation>, Problem> {
        match self.0.open() {
            Ok(client) => Ok(Box::new(client)),
            Err(Failure::Client(e)) => Err(e.into()),
            Err(e) => Err(Problem::gone(e.to_string())),
        }
    }
    fn has_ended(&self) -> bool {
        // It may be restarted.
        false
    }
}

impl Conversation for Client {
    fn read_with(&mut self, handler: &str, parameters: &str) -> Result<String, Problem> {
        Ok(self.read_text(handler, parameters)?)
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<String, Problem> {
        let text = Client::write(self, handler, &encode(value))?;
        // The first line reports success.
        Ok(text.split_once('\n').map_or(String::new(), |t| t.1.to_string()))
    }
    fn graph(&mut self) -> Result<Graph, Problem> {
        let (text, flat) = (self.read_text("config", "")?, self.read_text("flatconfig", "")?);
        Ok(super::graph::received(&text, &flat))
    }
    fn configuration_version(&mut self) -> Result<u64, Problem> {
        let mut hash = DefaultHasher::new();
        self.read_text("flatconfig", "")?.hash(&mut hash);
        Ok(hash.finish())
    }
    fn elements(&mut self) -> Result<Vec<Element>, Problem> {
        Ok(Handlers::elements(self)?)
    }
    fn spec(&self, _: &str, class: &str) -> Option<&'static ClassSpec> {
        Kinds::new().class(class)
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
