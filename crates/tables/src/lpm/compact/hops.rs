// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for the routes of a table. Prefixes with the same route share a number.

use std::collections::HashMap;

use crate::lpm::{Route, TableError};

/// The number of the default route.
pub const DEFAULT: u32 = 0;

/// Routes by number, with their use counts.
#[derive(Clone, Debug)]
pub struct Hops {
    routes: Vec<Option<Route>>,
    /// For each number, the number of prefixes that use it. The default route is not counted.
    uses: Vec<u32>,
    numbers: HashMap<Route, u32>,
    free: Vec<u32>,
}

impl Default for Hops {
    fn default() -> Self {
        Self { routes: vec![None], uses: vec![0], numbers: HashMap::new(), free: Vec::new() }
    }
}

impl Hops {
    /// The route with a number.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<Route> {
        self.routes.get(number).copied().flatten()
    }

    /// The memory of the routes, in bytes.
    pub fn bytes(&self) -> usize {
        self.routes.capacity() * size_of::<Option<Route>>()
    }

    /// Sets the default route, and returns the previous one.
    pub fn set_default(&mut self, route: Option<Route>) -> Option<Route> {
        std::mem::replace(&mut self.routes[DEFAULT as usize], route)
    }

    /// Returns a number for `route` and increments its use count. Returns [`TableError::Full`] if `most` routes have
    /// numbers.
    pub fn take(&mut self, route: Route, most: usize) -> Result<u32, TableError> {
        if let Some(&number) = self.numbers.get(&route) {
            self.uses[number as usize] += 1;
            return Ok(number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.routes.len() <= most => {
                self.routes.push(None);
                self.uses.push(0);
                (self.routes.len() - 1) as u32
            }
            None => return Err(TableError::Full),
        };
        self.routes[number as usize] = Some(route);
        self.uses[number as usize] = 1;
        self.numbers.insert(route, number);
        Ok(number)
    }

    /// Decrements the use count of a number. Returns its route.
    pub fn release(&mut self, number: u32) -> Option<Route> {
        let route = self.routes[number as usize];
        self.uses[number as usize] -= 1;
        if self.uses[number as usize] == 0 {
            self.routes[number as usize] = None;
            self.numbers.remove(&route?);
            self.free.push(number);
        }
        route
    }

    /// Gives a number to `route` in place of its old route. Returns the old route, or `None` if other prefixes use the
    /// number or `route` has a number already; nothing changes then.
    pub fn rename(&mut self, number: u32, route: Route) -> Option<Route> {
        if self.uses[number as usize] != 1 || self.numbers.contains_key(&route) {
            return None;
        }
        let old = self.routes[number as usize].replace(route)?;
        self.numbers.remove(&old);
        self.numbers.insert(route, number);
        Some(old)
    }
}
