// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route tables in the kernel.

use super::{RouteTable, Routes};
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Refused, Size, Test, Value};
use castanet_spec::anno;
use std::collections::BTreeMap;

/// The largest number of routes that are compared one after the other.
const ROUTES: usize = 64;

impl<T: RouteTable, const CHANGES: bool> Routes<T, CHANGES> {
    /// Describes the look-up: a comparison for each route, longest prefixes first. Packets without a route go up.
    pub(in crate::ip) fn lower(&self, code: &mut Code<'_>) -> Lowered {
        let mut routes = self.table.all();
        if routes.len() > ROUTES {
            return Err(Refused(format!("it has more than {ROUTES} routes")));
        }
        routes.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
        let address = code.annotation(anno::DST_IP, Size::Word);
        let none = code.label();
        // A known annotation is settled on the stack, so that all routes leave in the same state.
        let is_known = code.known_annotation::<4>(anno::DST_IP).is_some();
        let mut exits: Vec<(Label, u32, u32)> = Vec::new();
        let mut masked: BTreeMap<u32, Value> = BTreeMap::new();
        let mut ended = false;
        for (net, route) in routes {
            let mask = net.mask();
            let label = match exits.iter().find(|e| (e.1, e.2) == (route.port, route.gw)) {
                Some((label, ..)) => *label,
                None => {
                    let label = code.label();
                    exits.push((label, route.port, route.gw));
                    label
                }
            };
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
        Ok(())
    }
}
