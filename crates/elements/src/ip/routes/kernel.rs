// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route tables in the kernel.

use super::table::{Net, Route};
use super::{RouteTable, Routes};
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Size, TableKind, TableSpec, Test, Value};
use castanet_element::{Attached, InKernel};
use castanet_spec::anno;
use std::collections::BTreeMap;

/// The largest number of routes that are compared one after the other. More are looked up in a table.
const COMPARED: usize = 32;

/// The table: prefixes and their routes (gateway in the order of memory, output).
const ROUTES: TableSpec =
    TableSpec { kind: TableKind::Prefixes, key: 8, value: 8, entries: 4_000_000, ordered: false };

/// The key of a prefix in the table.
pub(super) fn key(net: Net) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (u32::from(net.prefix_len()).to_ne_bytes(), net.addr().to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// The value of a route in the table.
fn value(route: Route) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (route.gw.to_be_bytes(), route.port.to_ne_bytes());
    [a, b, c, d, e, f, g, h]
}

impl<T: RouteTable, const CHANGES: bool> InKernel for Routes<T, CHANGES> {
    /// Packets without a route go up.
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.table.len() > COMPARED {
            if !self.is_copied {
                return Err("the kernel has no room for its routes".into());
            }
            self.look_up_in_table(code);
        } else {
            self.compare(code);
        }
        Ok(())
    }

    fn attach(&mut self, to: Attached) {
        let Attached::Table(_, table) = to else { return };
        let all = self.table.all();
        self.is_copied = all.into_iter().all(|(net, route)| table.set(&key(net), &value(route)));
        self.copies = Some(table);
    }
}

impl<T: RouteTable, const CHANGES: bool> Routes<T, CHANGES> {
    /// Makes the route to a prefix in the kernel the same as here.
    pub(super) fn copy(&mut self, net: Net) {
        match (&self.copies, self.table.get(net)) {
            (Some(copies), Some(route)) => self.is_copied &= copies.set(&key(net), &value(route)),
            (Some(copies), None) => copies.remove(&key(net)),
            (None, _) => {}
        }
    }

    fn look_up_in_table(&self, code: &mut Code<'_>) {
        let (none, direct, chosen) = (code.label(), code.label(), code.label());
        let address = code.annotation(anno::DST_IP, Size::Word);
        let entry =
            code.look_up(0, ROUTES, &[(Size::Word, 32u32.into()), (Size::Word, address.into())], none);
        let gateway = code.load_entry(entry, 0, Size::Word);
        let port = code.load_entry(entry, 4, Size::Word);
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
