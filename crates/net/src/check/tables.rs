// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of elements as the check of a network needs it: routes, classifiers, numbers.

use crate::topology::arguments;
use castanet_classify::Program;
use castanet_graph::Graph;
use castanet_graph::filter::FilterNames;
use castanet_lang::Element;
use castanet_lang::args::{split, words};
use castanet_spec::{ArgCx, ArgValue, Names, Origin, Prefix};
use castanet_wire::ether::EtherAddr;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::Range;

/// The classes that look up routes.
pub const ROUTE_TABLES: &[&str] = &["StaticIPLookup", "LinearIPLookup", "RadixIPLookup", "DirectIPLookup"];

/// A route of a table.
#[derive(Clone, Debug)]
pub struct Route {
    /// The destinations.
    pub prefix: Prefix,
    /// The gateway, if there is one.
    pub gateway: Option<u32>,
    /// The output.
    pub port: usize,
    /// The place of the route in the configuration string.
    pub range: Range<usize>,
}

/// A route table. The routes are sorted by prefix.
#[derive(Debug, Default)]
pub struct Table {
    /// The routes.
    pub routes: Vec<Route>,
    by_prefix: HashMap<(u8, u32), usize>,
}

impl Table {
    fn new(e: &Element, cx: &ArgCx<'_>) -> Table {
        let mut table = Table::default();
        for range in split(&e.config) {
            let Some(text) = e.config.get(range.clone()) else { continue };
            let all: Vec<&str> = words(text).into_iter().filter_map(|r| text.get(r)).collect();
            let (net, gateway, port) = match all.as_slice() {
                [net, port] => (net, None, port),
                [net, gw, port] => (net, Ipv4Addr::parse(gw, cx).ok().map(Ipv4Addr::to_bits), port),
                _ => continue,
            };
            let (Ok(prefix), Ok(port)) = (Prefix::read(net, cx, true), port.parse()) else { continue };
            let prefix = Prefix { addr: prefix.network(), len: prefix.len };
            // A second route to the same network is an error of the router.
            table.by_prefix.entry((prefix.len, prefix.addr.to_bits())).or_insert(table.routes.len());
            table.routes.push(Route { prefix, gateway: gateway.filter(|&gw| gw != 0), port, range });
        }
        table
    }
    /// Returns the index of the route with the longest prefix that contains an address.
    pub fn find(&self, address: u32) -> Option<usize> {
        (0..=32u8).rev().find_map(|len| {
            let mask = Prefix { addr: Ipv4Addr::UNSPECIFIED, len }.mask().to_bits();
            self.by_prefix.get(&(len, address & mask)).copied()
        })
    }
}

/// What the check knows about an element.
#[derive(Debug)]
pub enum Known {
    /// A route table.
    Table(Table),
    /// A classifier.
    Classifier(Box<Program>),
    /// The first number in the configuration string, and the first Ethernet address of its last argument.
    Other(Option<i64>, Option<EtherAddr>),
}

/// Returns what the check knows about each element.
pub fn known(graph: &Graph, names: &Names) -> Vec<Known> {
    (0..graph.len())
        .map(|e| {
            let class = graph.spec(e).map_or("", |s| s.name);
            let Some(element) = graph.element(e) else { return Known::Other(None, None) };
            let cx = ArgCx { scope: element.scope(), names, origin: Origin::Operator };
            let all = arguments(&element.config);
            let texts: Vec<&str> = all.iter().map(String::as_str).collect();
            let config_names = FilterNames(ArgCx { ..cx });
            let program = match class {
                _ if ROUTE_TABLES.contains(&class) => return Known::Table(Table::new(element, &cx)),
                "Classifier" => Program::from_classifier(&texts).ok(),
                "IPClassifier" => Program::from_ip_classifier(&texts, &config_names).ok(),
                "IPFilter" => Program::from_ip_filter(&texts, &config_names, graph.outputs(e)).ok(),
                _ => None,
            };
            match program {
                Some((program, _)) => Known::Classifier(Box::new(program)),
                None => Known::Other(
                    number(class, &texts),
                    texts.last().and_then(|t| EtherAddr::parse(t, &cx).ok()),
                ),
            }
        })
        .collect()
}

/// Returns the number that an element's behaviour depends on: bytes to strip, a colour, or where a header starts.
fn number(class: &str, args: &[&str]) -> Option<i64> {
    let keyword = |name: &str| args.iter().find_map(|a| a.strip_prefix(name)?.trim().parse().ok());
    match class {
        // In old configurations, the first argument is a list of addresses, and the second one the offset.
        "CheckIPHeader" => {
            let number = |n: usize| args.get(n).and_then(|a| a.trim().parse().ok());
            keyword("OFFSET ").or_else(|| number(0)).or_else(|| number(1)).or(Some(0))
        }
        _ => args.first().and_then(|a| a.trim().parse().ok()),
    }
}

/// Returns the networks and addresses in the expressions of classifiers.
pub fn addresses_in(config: &str, cx: &ArgCx<'_>) -> Vec<Prefix> {
    let separators = |c: char| c.is_whitespace() || "(),&|!=<>?".contains(c);
    let words = config.split(separators).filter(|w| w.contains('.') || w.contains(':'));
    words.filter_map(|w| Prefix::read(w, cx, true).ok()).collect()
}
