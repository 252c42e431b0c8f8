// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of FromDevice elements that share the frames of a device.

use super::Args;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Returns the text by which an element claims its use of a device: the device, the filter, the protocol, and the group
/// if there is one. Without FANOUT, two elements with the same text would emit the same frames.
pub(super) fn claimed(args: &Args, filter: &str) -> String {
    let group = args.fanout.map_or(String::new(), |n| format!(" group {n},"));
    if args.is_xdp() {
        return format!("device '{}' with METHOD XDP,{group}", args.devname.0);
    }
    format!("device '{}', filter '{filter}', protocol {},{group}", args.devname.0, args.protocol)
}

/// For each group, the element numbers of its members, in the order in which they were built.
#[derive(Default)]
pub(super) struct Members(Mutex<HashMap<String, Vec<u32>>>);

impl Members {
    /// The number of members of a group.
    pub fn count(&self, group: &str) -> usize {
        self.0.lock().get(group).map_or(1, Vec::len)
    }

    /// Returns the number of an element in its group, from 0. An element that is not a member yet becomes one.
    pub fn next(&self, group: &str, element: u32) -> usize {
        let mut groups = self.0.lock();
        let members = groups.entry(group.to_string()).or_default();
        if !members.contains(&element) {
            members.push(element);
        }
        members.iter().position(|m| *m == element).unwrap_or(0)
    }
}
