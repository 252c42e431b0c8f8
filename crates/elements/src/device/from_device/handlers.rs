// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of FromDevice.

use super::FromDevice;
use castanet_element::prelude::*;

#[handlers]
impl FromDevice {
    /// Frames that the kernel dropped because the router did not read them in time.
    #[read(unit = "packets")]
    pub(in crate::device) fn kernel_drops(&mut self) -> Counted {
        Counted(self.all_drops())
    }
    /// How frames are received: `packet socket`, or by XDP, for example `xdp driver copy 1 queue`. `driver` says that the
    /// device's driver runs the XDP program, `generic` that the kernel does so later. `zero-copy` says that the device
    /// writes to the memory of packets itself, `copy` that the kernel copies frames there. Empty while the device is gone.
    #[read]
    pub(in crate::device) fn way(&self) -> String {
        self.open.as_ref().map_or(String::new(), |o| o.source.way())
    }
    /// The link type: `ETHER`, `IP`...
    #[read]
    fn encap(&self) -> String {
        self.link.to_string()
    }
    /// Sets `count` to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.count.reset();
    }
}
