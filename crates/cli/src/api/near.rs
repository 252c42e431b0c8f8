// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router of this process.

use super::problem::Problem;
use super::router::{Conversation, Reach};
use crate::observe::{Element, Handlers as _, Inside};
use castanet_element::remote::Remote as _;
use castanet_element::{CallError, Missing};
use castanet_graph::Graph;
use castanet_runtime::Running;
use castanet_spec::{ClassSpec, Origin};
use std::sync::Arc;

/// A router of this process.
#[derive(Clone)]
pub struct Near(pub Arc<Running>);

fn parts(handler: &str) -> (Option<&str>, &str) {
    handler.rsplit_once('.').map_or((None, handler), |(element, handler)| (Some(element), handler))
}

impl Reach for Near {
    fn open(&self) -> Result<Box<dyn Conversation>, Problem> {
        Ok(Box::new(self.clone()))
    }
    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}

impl Conversation for Near {
    fn read_with(&mut self, handler: &str, parameters: &str) -> Result<String, Problem> {
        let (element, handler) = parts(handler);
        Ok(self.0.read(element, handler, parameters)?)
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<String, Problem> {
        let (element, handler) = parts(handler);
        Ok(self.0.write(Origin::Authorised, element, handler, value)?)
    }
    fn graph(&mut self) -> Result<Graph, Problem> {
        let shared = self.0.current().ok_or(CallError::from(Missing::Router))?;
        Ok(shared.graph.clone())
    }
    fn configuration_version(&mut self) -> Result<u64, Problem> {
        Ok(self.0.swaps())
    }
    fn elements(&mut self) -> Result<Vec<Element>, Problem> {
        Ok(Inside(&self.0).elements()?)
    }
    fn spec(&self, element: &str, _: &str) -> Option<&'static ClassSpec> {
        let shared = self.0.current()?;
        shared.spec(shared.find(element)?)
    }
}
