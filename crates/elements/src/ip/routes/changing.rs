// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of route tables that handlers change.

use super::text::{Change, RouteText};
use super::{Args, RouteTable, Routes};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;

/// The engine of route tables that handlers change.
#[derive(Counts)]
pub struct ChangingRoutes<T> {
    pub(in crate::ip) routes: Routes<T>,
}

#[handlers]
impl<T: RouteTable> ChangingRoutes<T> {
    /// The routes: prefix, gateway and output.
    #[read(merge = first, expensive)]
    fn table(&self) -> Table {
        self.routes.list()
    }
    /// Output and gateway for an address; -1 if there is no route.
    #[read(merge = first)]
    fn lookup(&self, address: Ipv4Addr) -> String {
        self.routes.look_up(address)
    }
    /// Adds a route; an error if there is a route to the same prefix.
    #[write]
    fn add(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.routes.write(Change::Add, &route, cx)
    }
    /// Adds or replaces a route.
    #[write]
    fn set(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.routes.write(Change::Set, &route, cx)
    }
    /// Removes the route to exactly this prefix.
    #[write]
    fn remove(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.routes.write(Change::Remove, &route, cx)
    }
    /// Carries out lines 'add ROUTE', 'set ROUTE', 'remove ROUTE': all or none of them.
    #[write]
    fn ctrl(&mut self, changes: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.routes.ctrl(changes, cx)
    }
}

impl<T: RouteTable> Lifecycle for ChangingRoutes<T> {}

impl<T: RouteTable> Engine for ChangingRoutes<T> {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(ChangingRoutes { routes: Routes::build(args, cx)? })
    }
    fn args(&mut self) -> &mut Args {
        self.routes.args()
    }
}
