// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route tables in the kernel.

use super::blocks::{Arrays, HOP, HOPS, NEXT, Plan};
use super::table::Net;
use super::{RouteTable, Routes};
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Size, Table, Test, Value};
use castanet_element::{Attached, InKernel};
use castanet_spec::anno;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The largest number of routes that are compared one after the other. More are looked up in arrays.
const COMPARED: usize = 32;

/// The tables of routes that programs look up.
#[derive(Default)]
pub(super) struct Copies {
    /// The tables that programs are to use, once there are too many routes to compare.
    plan: OnceLock<Option<Plan>>,
    /// The table of blocks of the plan, until that of next hops is there too.
    blocks: Option<Arc<dyn Table>>,
    arrays: Option<Arrays>,
}

impl<T: RouteTable, const CHANGES: bool> InKernel for Routes<T, CHANGES> {
    /// Packets without a route go up.
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.table.len() <= COMPARED {
            self.compare(code);
            return Ok(());
        }
        let plan = self.copies.plan.get_or_init(|| Plan::of(&self.table.all(), 1));
        self.look_up_in_arrays(plan.ok_or("the kernel has no room for its routes")?, code);
        Ok(())
    }

    fn attach(&mut self, to: Attached) {
        let (Attached::Table(number, table), Some(plan)) = (to, self.plan()) else { return };
        let [blocks, hops] = plan.numbers();
        if number == blocks {
            self.copies.blocks = Some(table);
        } else if number == hops
            && let Some(blocks) = self.copies.blocks.take()
        {
            // The plan is made for these routes, so there is room.
            self.copies.arrays = Arrays::fill(plan, [blocks, table], self.table.all());
        }
    }
}

impl<T: RouteTable, const CHANGES: bool> Routes<T, CHANGES> {
    fn plan(&self) -> Option<Plan> {
        self.copies.plan.get().copied().flatten()
    }

    /// Makes the routes to prefixes in the kernel the same as here. If there is no room, the next programs use larger tables.
    pub(super) fn copy(&mut self, nets: &[Net]) {
        let Some(arrays) = &mut self.copies.arrays else {
            // Nothing has been copied yet.
            self.copies.plan = OnceLock::new();
            return;
        };
        let table = &self.table;
        let copied = nets.iter().all(|net| match table.get(*net) {
            Some(route) => arrays.set(*net, route),
            None => {
                let shorter = (0..net.prefix_len()).rev().map(|length| Net::new(net.addr(), length));
                let parent = shorter.into_iter().find_map(|n| Some((n.prefix_len(), table.get(n)?)));
                arrays.remove(*net, parent)
            }
        });
        if !copied {
            let next = self.plan().map_or(1, |p| p.version().wrapping_add(1));
            self.copies.plan = Plan::of(&self.table.all(), next).into();
        }
    }

    /// Looks up by the first 16 bits of the address, and as long as the entry leads to another block, by 8 more.
    fn look_up_in_arrays(&self, plan: Plan, code: &mut Code<'_>) {
        let (none, found, direct, chosen) = (code.label(), code.label(), code.label(), code.label());
        let [blocks, hops] = plan.numbers();
        let address = code.annotation(anno::DST_IP, Size::Word);
        // The address is in network order in memory, so its first byte is the lowest of a value on a little-endian machine.
        let byte = |code: &mut Code<'_>, n: u32| {
            let shift = if cfg!(target_endian = "little") { 8 * n } else { 24 - 8 * n };
            let shifted = code.compute(Arithmetic::ShiftRight, address, shift);
            code.compute(Arithmetic::And, shifted, 0xffu32)
        };
        let entry_in = |code: &mut Code<'_>, block: Value, n: u32| {
            let start = code.look_up(blocks, plan.blocks(), &[(Size::Word, block.into())], none);
            let index = byte(code, n);
            let offset = code.compute(Arithmetic::Multiply, index, 4u32);
            let at = code.compute(Arithmetic::Add, start, offset);
            let entry = code.load_entry(at, 0, Size::Word);
            code.branch(entry, Test::Equal, 0u32, none);
            entry
        };
        let first = byte(code, 0);
        let entry = entry_in(code, first, 1);
        let hop = code.compute(Arithmetic::And, entry, HOP);
        for n in [2, 3] {
            let deeper = code.label();
            code.branch(entry, Test::Common, NEXT, deeper);
            code.jump(found);
            code.bind(deeper);
            let block = code.compute(Arithmetic::And, entry, !NEXT);
            let next = entry_in(code, block, n);
            code.compute_into(entry, Arithmetic::Or, next, 0u32);
            code.compute_into(hop, Arithmetic::And, next, HOP);
        }
        code.jump(found);
        code.bind(found);
        let route = code.look_up(hops, HOPS, &[(Size::Word, hop.into())], none);
        let gateway = code.load_entry(route, 0, Size::Word);
        let port = code.load_entry(route, 4, Size::Word);
        code.branch(gateway, Test::Equal, 0u32, direct);
        code.set_annotation(anno::DST_IP, Size::Word, gateway);
        code.jump(chosen);
        code.bind(direct);
        if code.known_annotation::<4>(anno::DST_IP).is_some() {
            // The annotation is settled on the stack, so that all routes leave in the same state.
            code.set_annotation(anno::DST_IP, Size::Word, address);
        }
        code.bind(chosen);
        let outputs: Vec<Label> = (0..self.outputs).map(|_| code.label()).collect();
        for (number, output) in (0u32..).zip(&outputs) {
            code.branch(port, Test::Equal, number, *output);
        }
        // There are no other outputs.
        code.drop(castanet_element::spec::Reason::NoRoute as u16);
        for (number, output) in outputs.into_iter().enumerate() {
            code.bind(output);
            code.next(number);
        }
        code.bind(none);
        code.up();
    }

    /// A comparison for each route, longest prefixes first.
    fn compare(&self, code: &mut Code<'_>) {
        let mut routes = self.table.all();
        routes.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
        let address = code.annotation(anno::DST_IP, Size::Word);
        let none = code.label();
        let is_known = code.known_annotation::<4>(anno::DST_IP).is_some();
        let mut exits: Vec<(Label, u32, u32)> = Vec::new();
        let mut masked: BTreeMap<u32, Value> = BTreeMap::new();
        let mut ended = false;
        for (net, route) in routes {
            let label = match exits.iter().find(|e| (e.1, e.2) == (route.port, route.gw)) {
                Some((label, ..)) => *label,
                None => {
                    let label = code.label();
                    exits.push((label, route.port, route.gw));
                    label
                }
            };
            let mask = net.mask();
            if mask == 0 {
                code.jump(label);
                ended = true;
                break;
            }
            let value = match mask {
                u32::MAX => address,
                _ => *masked
                    .entry(mask)
                    .or_insert_with(|| code.compute(Arithmetic::And, address, mask.to_be())),
            };
            code.branch(value, Test::Equal, net.addr().to_be(), label);
        }
        if !ended {
            code.jump(none);
        }
        for (label, port, gw) in exits {
            code.bind(label);
            if gw != 0 {
                code.set_annotation(anno::DST_IP, Size::Word, gw.to_be());
            } else if is_known {
                code.set_annotation(anno::DST_IP, Size::Word, address);
            }
            code.next(port as usize);
        }
        code.bind(none);
        code.up();
    }
}
