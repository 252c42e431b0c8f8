// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDevice in the kernel, and the packets that come up from there.

use super::FromDevice;
use crate::device::come_up::receive;
use castanet_element::Attached;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

impl InKernel for FromDevice {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let args = &self.args;
        if !args.is_xdp() {
            return Err("it has no METHOD XDP".into());
        }
        if args.snaplen.is_some() || args.force_ip || args.fanout.is_some() {
            return Err("it has SNAPLEN, FORCE_IP or FANOUT".into());
        }
        // As long as the address is not known, no unicast frame is for the device.
        let mine = self.ether.unwrap_or_default();
        receive(code, &mine);
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Points(points) = to {
            self.points = Some(points);
        }
    }
    fn newly_lost(&mut self) -> u64 {
        let now = self.all_drops();
        let before = std::mem::replace(&mut self.counted_drops, now);
        now.saturating_sub(before)
    }
    fn receives(&self) -> Option<&str> {
        self.args.is_xdp().then_some(self.args.devname.0.as_str())
    }
}
