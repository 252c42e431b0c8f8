// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports that a device is back after it was down or did not exist. It may be another device with the same name.

use castanet_element::prelude::*;
use castanet_io::device;

/// The Ethernet address of a device; `None` if the device has none or does not exist.
pub(super) type Ether = Option<[u8; 6]>;

/// Returns the Ethernet address that a device has now.
pub(super) fn ether(name: &str) -> Ether {
    device::link_info(name).ok().and_then(|d| d.ether)
}

/// Reports that a device is back. Returns its Ethernet address, or `before` if it has none. If the address has changed,
/// and the configuration takes addresses from the device (`eth0:eth` and the like), the router reads its configuration
/// again. The report says whether it does.
pub(super) fn tell(name: &str, before: Ether, cx: &Cx<'_>) -> Ether {
    let now = ether(name).or(before);
    let start = format!("{}: {name}: device is back", cx.declaration());
    if now == before {
        cx.message(&start);
        return now;
    }
    let text = |e: Ether| e.map_or("none".into(), |e| e.map(|b| format!("{b:02x}")).join(":"));
    let end = match cx.device_changed(name) {
        true => "the configuration is read again, for addresses that it takes from the device",
        false => {
            "the configuration takes no addresses from the device, or keeps the old ones until it is read again"
        }
    };
    cx.message(&format!("{start}, with Ethernet address {} instead of {}; {end}", text(now), text(before)));
    now
}
