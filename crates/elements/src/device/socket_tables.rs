// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which hosts may connect or send to a socket, by route tables of the configuration.

use castanet_element::prelude::*;
use std::net::Ipv4Addr;

/// A route table: an element of a class with a handler `lookup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(u32);

impl ArgValue for Table {
    const TYPE: &'static str = "route table";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Table, ValueError> {
        let element = ElementRef::parse(text, cx)?;
        let class = cx.names.element_class(cx.scope, &castanet_lang::args::unquote(text)).map_or("", |e| e.1);
        if !class.ends_with("IPLookup") {
            return Err(format!("'{text}' is a {class}, not a route table such as RadixIPLookup").into());
        }
        u32::try_from(element.0).map(Table).map_err(|_| "no such element".into())
    }
}

/// The tables of admitted and refused hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tables {
    /// Hosts with a route in this table are admitted, whatever DENY says.
    pub(super) allow: Option<Table>,
    /// Hosts with a route in this table are refused.
    pub(super) deny: Option<Table>,
}

impl Tables {
    /// Whether a table has a route to an address; `None` if the table's handler `lookup` fails.
    fn has(table: Table, addr: Ipv4Addr, cx: &mut Cx<'_>) -> Option<bool> {
        let text = cx.read_handler(Some(table.0), "lookup", &addr.to_string()).ok()?;
        let port = text.split_whitespace().next()?.parse::<i64>().ok()?;
        Some(port >= 0)
    }

    /// Whether a host is admitted. A host in neither table is admitted, unless ALLOW is given without DENY. A failed
    /// lookup counts as no route in ALLOW, and as a route in DENY.
    pub(super) fn let_in(&self, addr: Ipv4Addr, cx: &mut Cx<'_>) -> bool {
        if self.allow.is_some_and(|t| Tables::has(t, addr, cx) == Some(true)) {
            return true;
        }
        match self.deny {
            Some(t) => Tables::has(t, addr, cx) == Some(false),
            None => self.allow.is_none(),
        }
    }
}
