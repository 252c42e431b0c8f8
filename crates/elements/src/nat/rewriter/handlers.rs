// SPDX-License-Identifier: MIT OR Apache-2.0
//! What handlers of rewriters show and change.

use super::Rewriter;
use crate::nat::header::Family;
use crate::nat::pattern::words;
use crate::nat::spec::SpecText;
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

impl<F: Family> Rewriter<F> {
    /// Read handlers.
    pub fn read(&mut self, handler: &str, parameters: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        let link = self.handle.linked().ok_or("not initialised")?;
        let now = cx.now();
        let mut store = link.store();
        match handler {
            "table" | "mappings" => return Ok(store.list(link.space, None, now)),
            "tcp_table" | "tcp_mappings" => return Ok(store.list(link.space, Some(protocol::TCP), now)),
            "udp_table" | "udp_mappings" => return Ok(store.list(link.space, Some(protocol::UDP), now)),
            "lookup" | "tcp_lookup" => {
                let t = cx.with_args(|a| flow(parameters, a))?;
                let found = store.look_up(link.space, protocol::TCP, t, now);
                let to = found.and_then(|v| store.flow(v >> 1).map(|f| f.rewritten(v & 1 == 1)));
                return Ok(to.map_or(String::new(), |t| {
                    let (src, dst) = (Ipv4Addr::from_bits(t.src()), Ipv4Addr::from_bits(t.dst()));
                    format!("{src} {} {dst} {}", t.sport(), t.dport())
                }));
            }
            "capacity" => return Ok(store.capacity.to_string()),
            _ => {}
        }
        store.clean(link.space, now, usize::MAX);
        if handler == "size" {
            return Ok(store.count().to_string());
        }
        let space = store.space(link.space).ok_or("no such rewriter")?;
        Ok(match handler {
            "table_size" | "nmappings" => space.entries.to_string(),
            "mapping_failures" => {
                space.inputs.iter().fold(0u64, |n, i| n.saturating_add(i.failures)).to_string()
            }
            "patterns" => {
                let mut out = String::new();
                for i in &space.inputs {
                    let _ = write!(out, "{}", i.spec.show());
                    let _ = if i.flows > 0 { writeln!(out, " [{}]", i.flows) } else { writeln!(out) };
                }
                out
            }
            _ => {
                let n = handler.strip_prefix("pattern").and_then(|n| n.parse::<usize>().ok());
                let text = n.and_then(|n| self.specs.get(n)).ok_or("no such input")?;
                text.text().to_string()
            }
        })
    }
    /// Write handlers.
    pub fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        let handle = self.handle.clone();
        let link = handle.linked().ok_or("not initialised")?;
        let mut store = link.store();
        match handler {
            "clear" => store.clear(link.space),
            "capacity" => {
                let n = cx.with_args(|a| i32::parse(value.trim(), a))?;
                let n = u32::try_from(n).map_err(|_| "must be positive")?;
                let now = cx.now();
                store.set_capacity(n, now);
            }
            _ => {
                let n = handler.strip_prefix("pattern").and_then(|n| n.parse::<usize>().ok());
                let text = cx.with_args(|a| SpecText::parse(value.trim(), a))?;
                let spec = text.resolve(&self.registry, &self.scope, self.outputs)?;
                self.check(&spec)?;
                let place = n.and_then(|n| self.specs.get_mut(n)).ok_or("no such input")?;
                *place = text;
                store.set_spec(link.space, n.unwrap_or(usize::MAX), spec);
            }
        }
        Ok(())
    }
    /// Handlers of the single inputs.
    pub fn own_handlers(&self) -> Vec<(String, &'static str)> {
        (0..self.specs.len()).map(|n| (format!("pattern{n}"), "rw")).collect()
    }
}

/// `SADDR SPORT DADDR DPORT`.
fn flow(text: &str, cx: &ArgCx<'_>) -> Result<Tuple, String> {
    match words(text).as_slice() {
        [sa, sp, da, dp] => {
            let ip = |t: &str| Ipv4Addr::parse(t, cx).map(Ipv4Addr::to_bits);
            Ok(Tuple::new(ip(sa)?, u16::parse(sp, cx)?, ip(da)?, u16::parse(dp, cx)?))
        }
        _ => Err("expected 'SADDR SPORT DADDR DPORT'".into()),
    }
}
