// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of all IPv4 route tables: changes the routes, and routes batches.

mod blocks;
mod handlers;
mod kernel;
mod table;
mod text;

use castanet_element::prelude::*;
use castanet_lang::args;
use std::collections::HashMap;
use std::net::Ipv4Addr;
pub use table::RouteTable;
use table::{Net, Route};
use text::{Change, Given, RouteError, RouteText, command, gateway, parse, wrong_word};

/// Arguments of every route table.
#[derive(Args)]
pub struct Args {
    /// Routes: 'ADDR[/MASK] [GATEWAY] OUTPUT'; the gateway '-' means no gateway.
    #[arg(rest, name = "ROUTE")]
    routes: Vec<RouteText>,
}

/// The engine of the route tables. `CHANGES` says whether handlers can change the routes.
#[derive(Counts)]
pub struct Routes<T, const CHANGES: bool = true> {
    args: Args,
    table: T,
    outputs: usize,
    reported: u8,
    /// The outputs of the packets of a batch, or [`NONE`].
    ports: Vec<u32>,
    /// The routes in the kernel, while a program there looks them up.
    copies: kernel::Copies,
}

/// In place of an output: the packet has no route.
const NONE: u32 = u32::MAX;

impl<T: RouteTable, const CHANGES: bool> Routes<T, CHANGES> {
    fn change(&mut self, change: Change, line: &str, cx: &ArgCx<'_>) -> Result<(), RouteError> {
        self.changes(&[(change, line)], cx)
    }

    /// Carries out all changes or none. First, each change is checked as if the changes before it were made already.
    /// The table is changed only if all are valid. If the table becomes full while it is changed, the changes made so
    /// far are undone.
    fn changes(&mut self, lines: &[(Change, &str)], cx: &ArgCx<'_>) -> Result<(), RouteError> {
        let mut after: HashMap<Net, Option<Route>> = HashMap::new();
        let mut todo = Vec::with_capacity(lines.len());
        for &(change, line) in lines {
            let given = parse(line, cx, self.outputs, change != Change::Remove)?;
            let route = Route { gw: given.gw.unwrap_or(0), port: given.port.unwrap_or(0) };
            let now = after.get(&given.net).copied().unwrap_or_else(|| self.table.get(given.net));
            match (change, now) {
                (Change::Add, Some(r)) => return Err(RouteError::Conflict(given.net, r)),
                (Change::Remove, now) => {
                    let named = |r: Route| {
                        given.gw.is_none_or(|g| g == r.gw) && given.port.is_none_or(|p| p == r.port)
                    };
                    if !now.is_some_and(named) {
                        let port = given.port.map_or("-1".to_string(), |p| p.to_string());
                        let gw = gateway(given.gw.unwrap_or(0));
                        return Err(RouteError::Missing { net: given.net, gw, port });
                    }
                    after.insert(given.net, None);
                    todo.push((given.net, None));
                }
                _ => {
                    after.insert(given.net, Some(route));
                    todo.push((given.net, Some(route)));
                }
            }
        }
        let changed: Vec<Net> = todo.iter().map(|c| c.0).collect();
        let mut undo = Vec::with_capacity(todo.len());
        for (net, route) in todo {
            undo.push((net, self.table.get(net)));
            let done = match route {
                Some(r) => self.table.replace(net, r).map(|_| ()),
                None => self.table.remove(net).map(|_| ()).or(Ok(())),
            };
            if let Err(e) = done {
                for (net, before) in undo.into_iter().rev() {
                    // This cannot fail, because the table held these routes before.
                    let _ = match before {
                        Some(r) => self.table.replace(net, r).map(|_| ()),
                        None => self.table.remove(net).map(|_| ()).or(Ok(())),
                    };
                }
                return Err(e.into());
            }
        }
        self.copy(&changed);
        Ok(())
    }

    /// Returns all routes, one per line.
    pub(super) fn list(&self) -> Table {
        let line = |(net, r): (Net, Route)| {
            let gw = gateway(r.gw);
            // Align columns: tab stops are eight characters apart.
            let tabs = if gw.len() < 8 { "\t\t" } else { "\t" };
            format!("{net}\t\t{gw}{tabs}{}\n", r.port)
        };
        Table(self.table.all().into_iter().map(line).collect())
    }
    /// Returns the output and the gateway (if any) for an address as text; `-1` if there is no route.
    pub(super) fn look_up(&self, addr: Ipv4Addr) -> String {
        match self.table.lookup(addr.to_bits()) {
            None => "-1".into(),
            Some(Route { gw: 0, port }) => port.to_string(),
            Some(Route { gw, port }) => format!("{port} {}", Ipv4Addr::from_bits(gw)),
        }
    }
    /// Carries out one change.
    pub(super) fn write(
        &mut self,
        change: Change,
        route: &RouteText,
        cx: &Cx<'_>,
    ) -> Result<(), HandlerError> {
        Ok(cx.with_args(|a| self.change(change, &route.0, a))?)
    }
    /// Carries out changes, one per line. If one of them fails, none is made.
    pub(super) fn change_all(&mut self, text: &str, cx: &Cx<'_>) -> Result<(), HandlerError> {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        let changes = lines.map(command).collect::<Result<Vec<_>, _>>()?;
        Ok(cx.with_args(|a| self.changes(&changes, a))?)
    }
    /// Removes all routes.
    pub(super) fn clear(&mut self) {
        let nets: Vec<Net> = self.table.all().into_iter().map(|r| r.0).collect();
        self.table.clear();
        self.copy(&nets);
    }

    #[cold]
    #[inline(never)]
    fn no_route(reported: &mut u8, p: Packet, cx: &mut Cx<'_>) {
        if *reported < 5 {
            *reported += 1;
            cx.message(&format!("{}: no route for {}", T::LABEL, p.dst_addr()));
        }
        cx.drop(p, Reason::NoRoute);
    }

    /// Routes a batch with one lookup after the other. As soon as a packet does not go to the output of the first
    /// packet, `push_rest` takes over.
    #[inline(always)]
    fn push_in_turn(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let first = batch.as_slice().first().and_then(|p| self.table.lookup(p.dst_ip()));
        let Some(Route { port, .. }) = first else { return self.push_rest(batch, 0, 0, cx) };
        let mut alike = 0;
        for p in batch.iter_mut() {
            match self.table.lookup(p.dst_ip()) {
                Some(r) if r.port == port => {
                    change(p, r);
                    alike += 1;
                }
                _ => return self.push_rest(batch, alike, port, cx),
            }
        }
        cx.forward(port as usize, batch);
    }

    /// Routes the rest of a batch. The first `alike` packets have been routed already, to output `port`.
    #[inline(never)]
    fn push_rest(&mut self, batch: &mut Batch, alike: usize, port: u32, cx: &mut Cx<'_>) {
        let (mut number, Routes { table, reported, .. }) = (0, self);
        let output = |p: &mut Packet| {
            number += 1;
            let done = Route { gw: 0, port };
            let route = if number <= alike { Some(done) } else { table.lookup(p.dst_ip()) };
            route.map(|r| change(p, r)).ok_or(Reason::NoRoute)
        };
        cx.emit_each_or(batch, Reason::NoRoute, output, |cx, p, _| Self::no_route(reported, p, cx));
    }

    /// Routes a batch: does all lookups together, then emits all packets.
    #[inline(always)]
    fn push_side_by_side(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let Routes { table, ports, reported, .. } = self;
        ports.resize(batch.len(), NONE);
        table.lookup_each(batch.as_mut_slice(), |i, p, route| {
            if let Some(port) = ports.get_mut(i) {
                *port = route.map_or(NONE, |r| change(p, r) as u32);
            }
        });
        match ports.first() {
            Some(&port) if port != NONE && ports.iter().all(|&p| p == port) => {
                cx.forward(port as usize, batch)
            }
            _ => {
                let mut ports = ports.iter();
                // Ports of routes are below the number of outputs, so only packets without a route have no output.
                let output = |_: &mut Packet| Ok(ports.next().copied().unwrap_or(NONE) as usize);
                cx.emit_each_or(batch, Reason::NoRoute, output, |cx, p, _| Self::no_route(reported, p, cx));
            }
        }
    }
}

impl<T: RouteTable, const CHANGES: bool> Element for Routes<T, CHANGES> {
    /// Routes a batch. A batch whose packets all go to one output is forwarded whole.
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if T::LARGE { self.push_side_by_side(batch, cx) } else { self.push_in_turn(batch, cx) }
    }
    /// Routes one packet.
    #[inline]
    fn push_one(&mut self, _: usize, mut p: Packet, cx: &mut Cx<'_>) {
        match self.table.lookup(p.dst_ip()).map(|r| change(&mut p, r)) {
            Some(port) => cx.emit(port, p),
            None => Self::no_route(&mut self.reported, p, cx),
        }
    }
}

impl<T: RouteTable, const CHANGES: bool> Lifecycle for Routes<T, CHANGES> {}

impl<T: RouteTable, const CHANGES: bool> Engine for Routes<T, CHANGES> {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let table = T::default();
        let mut this = Routes {
            args,
            table,
            outputs: cx.outputs,
            reported: 0,
            ports: Vec::new(),
            copies: kernel::Copies::default(),
        };
        let routes = std::mem::take(&mut this.args.routes);
        let ranges = args::split(cx.config);
        let (mut errors, mut repeated) = (Vec::new(), 0_usize);
        for (i, RouteText(line)) in routes.iter().enumerate() {
            let known = |g: &Given| this.table.get(g.net).is_some();
            if parse(line, &cx.arg_cx(), cx.outputs, true).as_ref().is_ok_and(known) {
                // Of several routes to one prefix, the first is used.
                repeated += 1;
                continue;
            }
            if let Err(e) = this.change(Change::Add, line, &cx.arg_cx()) {
                let range = ranges.get(i).cloned().unwrap_or(0..usize::MAX);
                let written = cx.config.get(range.clone()).unwrap_or("");
                let (range, help) = match wrong_word(written, &cx.arg_cx(), cx.outputs) {
                    Some((word, help)) => (range.start + word.start..range.start + word.end, help),
                    None => (range, String::new()),
                };
                errors.push(ArgError::new(format!("argument {} {e}", i + 1), range).help(help));
            }
        }
        this.args.routes = routes;
        if repeated > 0 {
            let s = if repeated == 1 { "" } else { "s" };
            let text = format!("{repeated} route{s} replaced by later versions");
            cx.warn(
                ArgError::warning(text, 0..usize::MAX)
                    .help("of several routes to one prefix, the first is in force"),
            );
        }
        if errors.is_empty() { Ok(this) } else { Err(ConfigError(errors)) }
    }
    fn args(&mut self) -> &mut Args {
        &mut self.args
    }
}

/// Sets the next hop of a packet to the gateway of its route, if there is one. Returns the output of the route.
#[inline(always)]
fn change(p: &mut Packet, route: Route) -> usize {
    if route.gw != 0 {
        p.set_dst_ip(route.gw);
    }
    route.port as usize
}

#[cfg(test)]
#[path = "tests/routes.rs"]
mod tests;
