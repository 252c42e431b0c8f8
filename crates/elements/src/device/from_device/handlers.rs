// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of FromDevice.

use super::FromDevice;
use castanet_element::prelude::*;

#[handlers]
impl FromDevice {
    /// Frames that the kernel dropped because the router did not read them in time.
    #[read(unit = "packets")]
    fn kernel_drops(&mut self) -> Counted {
        let now = self.socket.as_mut().map_or(0, |s| s.0.drops());
        Counted(self.drops_before.saturating_add(now))
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
