// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsing of routes and of changes of routes, and the errors in them.

use super::table::{Net, Route};
use castanet_element::prelude::*;
use castanet_lang::args as text;
use castanet_tables::lpm::TableError;
use std::net::Ipv4Addr;
use std::ops::Range;

/// The text of one route. It is parsed later, when its position among the arguments is known, because errors give that
/// position.
#[derive(Clone, Debug)]
pub struct RouteText(pub(super) String);

impl ArgValue for RouteText {
    const TYPE: &'static str = "route";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<RouteText, ValueError> {
        Ok(RouteText(text.to_string()))
    }
}

/// A parsed route. Gateway and output may be missing in a route that is to be removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) net: Net,
    pub(super) gw: Option<u32>,
    pub(super) port: Option<u32>,
}

/// Parses a route. If `whole` is false, the gateway and the output may be missing.
pub(super) fn parse(line: &str, cx: &ArgCx<'_>, outputs: usize, whole: bool) -> Result<Given, RouteError> {
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

/// Returns the range of the first wrong word in a route, and a hint that says what to write there. If the number of
/// words is wrong, the range covers the whole route. None if the route is well-formed.
pub(super) fn wrong_word(line: &str, cx: &ArgCx<'_>, outputs: usize) -> Option<(Range<usize>, String)> {
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
        let help = match word(&net) {
            "default" => "write 0.0.0.0/0 for the default route".to_string(),
            _ => e.mend().0.to_string(),
        };
        return Some((net, help));
    }
    if let Some(gw) = &gw
        && u32::parse(word(gw), cx).is_ok()
        && Ipv4Addr::parse(word(&port), cx).is_ok()
    {
        let meant = format!("{} {} {}", word(&net), word(&port), word(gw));
        return Some((gw.start..port.end, format!("the gateway comes before the output: {meant}")));
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

/// Returns a gateway as text. 0 stands for no gateway.
pub(super) fn gateway(gw: u32) -> String {
    if gw == 0 { "-".into() } else { Ipv4Addr::from_bits(gw).to_string() }
}

/// The reason why a table was not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RouteError {
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

/// The kind of a change of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ip) enum Change {
    Add,
    Set,
    Remove,
}

/// Parses one line of the handler `ctrl`. Returns the kind of change and the text of the route.
pub(super) fn command(line: &str) -> Result<(Change, &str), RouteError> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "add" => Ok((Change::Add, rest)),
        "set" => Ok((Change::Set, rest)),
        "remove" => Ok((Change::Remove, rest)),
        _ => Err(RouteError::Command(word.to_string())),
    }
}
