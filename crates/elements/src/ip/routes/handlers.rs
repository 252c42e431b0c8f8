// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of route tables.

use super::text::{Change, RouteText};
use super::{RouteTable, Routes};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;

#[handlers]
impl<T: RouteTable, const CHANGES: bool> Routes<T, CHANGES> {
    /// All routes, one per line: prefix, gateway and output.
    #[read(merge = first, expensive)]
    fn table(&self) -> Table {
        self.list()
    }
    /// The output and the gateway for an address; -1 if there is no route.
    #[read(merge = first)]
    fn lookup(&self, address: Ipv4Addr) -> String {
        self.look_up(address)
    }
    /// Adds a route; an error if there is a route to the same prefix.
    #[write(only = CHANGES)]
    fn add(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write(Change::Add, &route, cx)
    }
    /// Adds or replaces a route.
    #[write(only = CHANGES)]
    fn set(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write(Change::Set, &route, cx)
    }
    /// Removes the route to the given prefix.
    #[write(only = CHANGES)]
    fn remove(&mut self, route: RouteText, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write(Change::Remove, &route, cx)
    }
    /// Carries out one change per line, 'add ROUTE', 'set ROUTE' or 'remove ROUTE', and none if one of them fails.
    #[write(only = CHANGES)]
    fn ctrl(&mut self, changes: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.change_all(changes, cx)
    }
}
