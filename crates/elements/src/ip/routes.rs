// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of all IPv4 route tables: parses routes, changes tables, and routes batches.

use castanet_element::prelude::*;
use castanet_lang::args as text;
use castanet_tables::lpm::{DirectTable, NotFound, RadixTable, StaticTable, TableError};
pub(super) use castanet_tables::lpm::{Prefix as Net, Route};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::Range;

/// A table for longest-prefix match.
pub trait RouteTable: Default + Send + 'static {
    /// The start of messages about packets without a route.
    const LABEL: &'static str;
    /// Whether a lookup usually waits for memory, because the table is large. Several lookups at once are then faster.
    const LARGE: bool;
    fn replace(&mut self, net: Net, route: Route) -> Result<Option<Route>, TableError>;
    fn remove(&mut self, net: Net) -> Result<Route, NotFound>;
    fn get(&self, net: Net) -> Option<Route>;
    fn lookup(&self, addr: u32) -> Option<Route>;
    fn lookup_many(&self, addrs: &[u32], routes: &mut [Option<Route>]);
    fn all(&self) -> Vec<(Net, Route)>;
    fn clear(&mut self);
}

macro_rules! tables {
    ($($t:ty: $label:literal, $large:literal;)+) => { $(
        impl RouteTable for $t {
            const LABEL: &'static str = $label;
            const LARGE: bool = $large;
            fn replace(&mut self, net: Net, route: Route) -> Result<Option<Route>, TableError> {
                <$t>::replace(self, net, route)
            }
            fn remove(&mut self, net: Net) -> Result<Route, NotFound> {
                <$t>::remove(self, net)
            }
            fn get(&self, net: Net) -> Option<Route> {
                <$t>::get(self, net)
            }
            #[inline]
            fn lookup(&self, addr: u32) -> Option<Route> {
                <$t>::lookup(self, addr)
            }
            #[inline]
            fn lookup_many(&self, addrs: &[u32], routes: &mut [Option<Route>]) {
                <$t>::lookup_many(self, addrs, routes)
            }
            fn all(&self) -> Vec<(Net, Route)> {
                self.iter().collect()
            }
            fn clear(&mut self) {
                <$t>::clear(self)
            }
        }
    )+ };
}
tables! {
    StaticTable: "LinearIPLookup", false;
    RadixTable: "IPRouteTable", true;
    DirectTable: "IPRouteTable", true;
}

/// The text of one route. It is kept unparsed, so that errors can give the number of the route.
#[derive(Clone, Debug)]
pub struct RouteText(String);

impl ArgValue for RouteText {
    const TYPE: &'static str = "route";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<RouteText, ValueError> {
        Ok(RouteText(text.to_string()))
    }
}

/// Arguments of every route table.
#[derive(Args)]
pub struct Args {
    /// Routes: 'ADDR[/MASK] [GATEWAY] OUTPUT'; a gateway of '-' means none.
    #[arg(rest, name = "ROUTE")]
    routes: Vec<RouteText>,
}

/// A parsed route. Gateway and output may be missing if the text only names a route to remove.
#[derive(Clone, Copy, Debug)]
struct Given {
    net: Net,
    gw: Option<u32>,
    port: Option<u32>,
}

fn parse(line: &str, cx: &ArgCx<'_>, outputs: usize, whole: bool) -> Result<Given, RouteError> {
    let words: Vec<&str> = text::words(line).into_iter().filter_map(|r| line.get(r)).collect();
    let (net, gw, port) = match words[..] {
        [net] if !whole => (net, None, None),
        [net, port] => (net, None, Some(port)),
        [net, gw, port] => (net, Some(gw), Some(port)),
        _ => return Err(RouteError::Shape),
    };
    let net = Prefix::read(net, cx, true).map_err(|_| RouteError::Shape)?;
    let gw = match gw {
        Some("-") => Some(0),
        Some(gw) => Some(Ipv4Addr::parse(gw, cx).map_err(|_| RouteError::Shape)?.to_bits()),
        None => None,
    };
    let port = match port {
        Some(t) => match u32::parse(t, cx) {
            Ok(n) if (n as usize) < outputs => Some(n),
            _ => return Err(RouteError::Output),
        },
        None => None,
    };
    Ok(Given { net: Net::new(net.addr.to_bits(), net.len), gw, port })
}

/// Returns the place of the first wrong word in a route, and what to write instead; none for a well-formed route. If
/// the number of words is wrong, the place is the whole route.
fn wrong_word(line: &str, cx: &ArgCx<'_>, outputs: usize) -> Option<(Range<usize>, String)> {
    let word = |r: &Range<usize>| line.get(r.clone()).unwrap_or("");
    let (net, gw, port) = match text::words(line).as_slice() {
        [net, port] => (net.clone(), None, port.clone()),
        [net, gw, port] => (net.clone(), Some(gw.clone()), port.clone()),
        _ => {
            return Some((
                0..line.len(),
                "write a prefix, a gateway if there is one, and an output: 10.0.0.0/8 192.168.0.1 0".into(),
            ));
        }
    };
    if let Err(e) = Prefix::read(word(&net), cx, true) {
        return Some((net, e.mend().0.to_string()));
    }
    if let Some(gw) = gw.filter(|gw| word(gw) != "-")
        && let Err(e) = Ipv4Addr::parse(word(&gw), cx)
    {
        return Some((gw, e.mend().0.to_string()));
    }
    let right = u32::parse(word(&port), cx).is_ok_and(|n| (n as usize) < outputs);
    let help = match outputs {
        0 => "the element has no output".to_string(),
        1 => "the only output is 0; connect another one, or write 0".to_string(),
        n => format!("outputs are 0 to {}", n - 1),
    };
    (!right).then_some((port, help))
}

fn gateway(gw: u32) -> String {
    if gw == 0 { "-".into() } else { Ipv4Addr::from_bits(gw).to_string() }
}

/// The reason why a table was not changed.
#[derive(Debug, thiserror::Error)]
enum RouteError {
    #[error("should be 'ADDR/MASK [GATEWAY] OUTPUT'")]
    Shape,
    #[error("bad OUTPUT")]
    Output,
    #[error("unknown command '{0}', expected 'add', 'set' or 'remove'")]
    Command(String),
    #[error("conflict with existing route '{0} {gw} {port}'", gw = gateway(.1.gw), port = .1.port)]
    Conflict(Net, Route),
    #[error("route '{net} {gw} {port}' not found")]
    Missing { net: Net, gw: String, port: String },
    #[error(transparent)]
    Full(#[from] TableError),
}

impl From<RouteError> for HandlerError {
    fn from(e: RouteError) -> Self {
        let text = e.to_string();
        match e {
            RouteError::Shape | RouteError::Output | RouteError::Command(_) => HandlerError::Value(text),
            RouteError::Conflict(..) => HandlerError::Exists(text),
            RouteError::Missing { .. } | RouteError::Full(_) => HandlerError::Failed(text),
        }
    }
}

/// One change of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Set,
    Remove,
}

/// The engine of the route tables. Each class declares its own handlers, because they differ.
#[derive(Counts)]
pub struct Routes<T> {
    args: Args,
    table: T,
    outputs: usize,
    reported: u8,
    addrs: Vec<u32>,
    found: Vec<Option<Route>>,
}

impl<T: RouteTable> Routes<T> {
    fn change(&mut self, change: Change, line: &str, cx: &ArgCx<'_>) -> Result<(), RouteError> {
        self.changes(&[(change, line)], cx)
    }

    /// Carries out all changes or none. First, each change is checked against the routes that the changes before it
    /// would leave. The table is touched only if all changes are valid. If the table then becomes full, the changes
    /// already made are undone.
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
        let mut undo = Vec::with_capacity(todo.len());
        for (net, route) in todo {
            undo.push((net, self.table.get(net)));
            let done = match route {
                Some(r) => self.table.replace(net, r).map(|_| ()),
                None => self.table.remove(net).map(|_| ()).or(Ok(())),
            };
            if let Err(e) = done {
                for (net, before) in undo.into_iter().rev() {
                    // The old routes fitted before, so they fit again.
                    let _ = match before {
                        Some(r) => self.table.replace(net, r).map(|_| ()),
                        None => self.table.remove(net).map(|_| ()).or(Ok(())),
                    };
                }
                return Err(e.into());
            }
        }
        Ok(())
    }

    /// Returns all routes, one per line.
    pub(super) fn list(&self) -> Table {
        let line = |(net, r): (Net, Route)| {
            let gw = gateway(r.gw);
            // Tab stops are eight characters apart.
            let tabs = if gw.len() < 8 { "\t\t" } else { "\t" };
            format!("{net}\t\t{gw}{tabs}{}\n", r.port)
        };
        Table(self.table.all().into_iter().map(line).collect())
    }
    /// Returns output and gateway for an address; -1 if there is no route.
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
    /// Carries out changes, one per line: all of them or none.
    pub(super) fn ctrl(&mut self, text: &str, cx: &Cx<'_>) -> Result<(), HandlerError> {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        let changes = lines.map(command).collect::<Result<Vec<_>, _>>()?;
        Ok(cx.with_args(|a| self.changes(&changes, a))?)
    }
    /// Removes all routes.
    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    #[cold]
    #[inline(never)]
    fn no_route(&mut self, p: Packet, cx: &mut Cx<'_>) {
        if self.reported < 5 {
            self.reported += 1;
            cx.message(&format!("{}: no route for {}", T::LABEL, p.dst_addr()));
        }
        cx.drop(p, Reason::NoRoute);
    }

    /// Routes one packet.
    #[inline]
    pub(super) fn push_one(&mut self, mut p: Packet, cx: &mut Cx<'_>) {
        match self.table.lookup(p.dst_ip()).map(|r| change(&mut p, r)) {
            Some(port) => cx.emit(port, p),
            None => self.no_route(p, cx),
        }
    }

    /// Routes a batch. A batch whose packets all go to one output is forwarded whole.
    #[inline]
    pub(super) fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if T::LARGE { self.push_side_by_side(batch, cx) } else { self.push_in_turn(batch, cx) }
    }

    /// Routes a batch with one lookup after the other. Once a packet goes to another output than the first packet,
    /// `push_rest` takes over.
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

    /// Routes a batch whose first `alike` packets are routed already, to output `port`.
    #[inline(never)]
    fn push_rest(&mut self, batch: &mut Batch, alike: usize, port: u32, cx: &mut Cx<'_>) {
        for (i, mut p) in batch.drain().enumerate() {
            let done = Route { gw: 0, port };
            let route = if i < alike { Some(done) } else { self.table.lookup(p.dst_ip()) };
            match route.map(|r| change(&mut p, r)) {
                Some(port) => cx.emit_beside(port, p, Reason::NoPort),
                None => self.no_route(p, cx),
            }
        }
    }

    /// Routes a batch: does all lookups at once, then sends all packets.
    #[inline(always)]
    fn push_side_by_side(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.addrs.clear();
        self.addrs.extend(batch.iter().map(Packet::dst_ip));
        self.found.resize(batch.len(), None);
        self.table.lookup_many(&self.addrs, &mut self.found);
        let first = self.found.first().copied().flatten();
        if let Some(Route { port, .. }) = first
            && self.found.iter().all(|r| r.is_some_and(|r| r.port == port))
        {
            for (p, r) in batch.iter_mut().zip(self.found.iter().flatten()) {
                change(p, *r);
            }
            cx.forward(port as usize, batch);
            return;
        }
        let found = std::mem::take(&mut self.found);
        for (mut p, route) in batch.drain().zip(&found) {
            match route.map(|r| change(&mut p, r)) {
                Some(port) => cx.emit_beside(port, p, Reason::NoPort),
                None => self.no_route(p, cx),
            }
        }
        self.found = found;
    }
}

impl<T: RouteTable> Lifecycle for Routes<T> {}

#[handlers]
impl<T: RouteTable> Routes<T> {}

impl<T: RouteTable> Engine for Routes<T> {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let table = T::default();
        let (addrs, found) = (Vec::new(), Vec::new());
        let mut this = Routes { args, table, outputs: cx.outputs, reported: 0, addrs, found };
        let routes = std::mem::take(&mut this.args.routes);
        let ranges = text::split(cx.config);
        let (mut errors, mut repeated) = (Vec::new(), 0_usize);
        for (i, RouteText(line)) in routes.iter().enumerate() {
            let known = |g: &Given| this.table.get(g.net).is_some();
            if parse(line, &cx.arg_cx(), cx.outputs, true).as_ref().is_ok_and(known) {
                // The first route to a prefix is kept.
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

/// Sets the next hop of a packet. Returns its output.
#[inline(always)]
fn change(p: &mut Packet, route: Route) -> usize {
    if route.gw != 0 {
        p.set_dst_ip(route.gw);
    }
    route.port as usize
}

fn command(line: &str) -> Result<(Change, &str), RouteError> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "add" => Ok((Change::Add, rest)),
        "set" => Ok((Change::Set, rest)),
        "remove" => Ok((Change::Remove, rest)),
        _ => Err(RouteError::Command(word.to_string())),
    }
}

#[cfg(test)]
#[path = "tests/routes.rs"]
mod tests;
