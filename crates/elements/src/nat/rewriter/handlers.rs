// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of rewriters.

use super::{Rewriter, RewriterArgs};
use crate::nat::pattern::words;
use crate::nat::spec::SpecText;
use crate::nat::store::{Input, Space, Store};
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;
use parking_lot::MutexGuard;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The flow of a packet: `SADDR SPORT DADDR DPORT`.
pub struct FlowText(Tuple);

impl ArgValue for FlowText {
    const TYPE: &'static str = "SADDR SPORT DADDR DPORT";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<FlowText, ValueError> {
        match words(text).as_slice() {
            [sa, sp, da, dp] => {
                let ip = |t: &str| Ipv4Addr::parse(t, cx).map(Ipv4Addr::to_bits);
                Ok(FlowText(Tuple::new(ip(sa)?, u16::parse(sp, cx)?, ip(da)?, u16::parse(dp, cx)?)))
            }
            _ => Err("expected 'SADDR SPORT DADDR DPORT'".into()),
        }
    }
}

impl<A: RewriterArgs> Rewriter<A> {
    /// Locks the store. Returns the store, and the number of this rewriter in the store.
    fn store(&self) -> Result<(MutexGuard<'_, Store>, u16), HandlerError> {
        let link = self.handle.linked().ok_or("not initialised")?;
        Ok((link.store(), link.space))
    }
    /// Removes expired flows, then calls `show` with this rewriter's part of the store.
    fn counts<T>(&self, cx: &mut Cx<'_>, show: impl FnOnce(&Space) -> T) -> Result<T, HandlerError> {
        let (mut store, space) = self.store()?;
        store.clean(space, cx.now(), usize::MAX);
        store.space(space).map(show).ok_or_else(|| "no such rewriter".into())
    }
    /// Lists the flows of one protocol, or of all protocols if `proto` is `None`.
    pub(in crate::nat) fn list(&self, proto: Option<u8>, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        let (mut store, space) = self.store()?;
        Ok(Table(store.list(space, proto, cx.now())))
    }
    /// Returns the new addresses and ports of a TCP packet; `None` if its flow is not known.
    pub(in crate::nat) fn look_up(
        &self,
        flow: &FlowText,
        cx: &mut Cx<'_>,
    ) -> Result<Option<String>, HandlerError> {
        let (mut store, space) = self.store()?;
        let found = store.look_up(space, protocol::TCP, flow.0, cx.now());
        let to = found.and_then(|v| store.flow(v >> 1).map(|f| f.rewritten(v & 1 == 1)));
        Ok(to.map(|t| {
            let (src, dst) = (Ipv4Addr::from_bits(t.src()), Ipv4Addr::from_bits(t.dst()));
            format!("{src} {} {dst} {}", t.sport(), t.dport())
        }))
    }
    /// Formats an input as a line of the handler `patterns`.
    fn line(&self, input: &Input) -> String {
        let rule = input.spec.show(self.kind);
        if input.flows > 0 { format!("{rule} [{}]", input.flows) } else { rule }
    }
}

#[handlers]
impl<A: RewriterArgs> Rewriter<A> {
    /// The flows, one line for each direction.
    #[read(only = A::ONE_TABLE)]
    fn table(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.list(None, cx)
    }
    /// The flows (old name of `table`).
    #[read(only = A::ONE_TABLE, deprecated)]
    fn mappings(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.list(None, cx)
    }
    /// Number of keys in the table; most flows have two, one for each direction.
    #[read(unit = "entries")]
    fn table_size(&self, cx: &mut Cx<'_>) -> Result<usize, HandlerError> {
        self.counts(cx, |space| space.entries)
    }
    /// Number of keys in the table (old name of `table_size`).
    #[read(unit = "entries", deprecated)]
    fn nmappings(&self, cx: &mut Cx<'_>) -> Result<usize, HandlerError> {
        self.table_size(cx)
    }
    /// The specification of each input, and in brackets the number of its flows unless that is 0.
    #[read]
    fn patterns(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.counts(cx, |space| {
            let mut out = String::new();
            for i in &space.inputs {
                let _ = writeln!(out, "{}", self.line(i));
            }
            Table(out)
        })
    }
    /// The specification of input N, and in brackets the number of its flows unless that is 0.
    #[read(each = self.specs.len())]
    fn pattern(&self, input: usize, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        let line = self.counts(cx, |space| space.inputs.get(input).map(|i| self.line(i)))?;
        line.ok_or_else(|| "no such input".into())
    }
    /// Sets the specification of input N, and removes the flows that the input has made.
    #[write(each = self.specs.len())]
    fn set_pattern(&mut self, input: usize, text: SpecText) -> Result<(), HandlerError> {
        let handle = self.handle.clone();
        let link = handle.linked().ok_or("not initialised")?;
        let spec = text.resolve(&self.registry, &self.scope, self.outputs)?;
        self.check(&spec)?;
        *self.specs.get_mut(input).ok_or("no such input")? = text;
        let mut store = link.store();
        store.clear_input(link.space, u16::try_from(input).unwrap_or(u16::MAX));
        store.set_spec(link.space, input, spec);
        Ok(())
    }
    /// Number of flows, including those of other rewriters that share the capacity.
    #[read(unit = "flows")]
    fn size(&self, cx: &mut Cx<'_>) -> Result<usize, HandlerError> {
        let (mut store, space) = self.store()?;
        store.clean(space, cx.now(), usize::MAX);
        Ok(store.count())
    }
    /// The maximum number of flows that may exist at a time.
    #[read(unit = "flows")]
    fn capacity(&self) -> Result<u32, HandlerError> {
        Ok(self.store()?.0.capacity)
    }
    #[write]
    fn set_capacity(&mut self, capacity: i32, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let capacity = u32::try_from(capacity).map_err(|_| "must be positive")?;
        self.store()?.0.set_capacity(capacity, cx.now());
        Ok(())
    }
    /// Removes all flows.
    #[write(button)]
    fn clear(&mut self) -> Result<(), HandlerError> {
        let (mut store, space) = self.store()?;
        store.clear(space);
        Ok(())
    }
}
