// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDevice in the kernel, and the packets that come up from there.

use super::{FromDevice, Open, Source};
use crate::device::come_up::{is_counted, receive};
use castanet_element::Attached;
use castanet_element::kernel::handover::LONGEST;
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
        match to {
            Attached::Points(points) => self.points = Some(points),
            Attached::Started | Attached::Stopped => {
                if let Some(Open { source: Source::Xdp(receiver), .. }) = &mut self.open {
                    // The first turn tries to start again, and reports the error. If it cannot be stopped, more frames come up, which
                    // `discard_unread` drops as far as they have come by then.
                    let _ = if matches!(to, Attached::Started) { receiver.start() } else { receiver.stop() };
                }
            }
            Attached::Time(_) | Attached::Table(..) => {}
        }
    }
    fn newly_lost(&mut self) -> u64 {
        let now = self.all_drops();
        let before = std::mem::replace(&mut self.counted_drops, now);
        now.saturating_sub(before)
    }
    fn discard_unread(&mut self) -> u64 {
        let (Some(points), Some(Open { source: Source::Xdp(receiver), .. })) = (&self.points, &mut self.open)
        else {
            return 0;
        };
        let mut unread = 0;
        receiver.set_lead(LONGEST);
        // The socket gets no more frames, so at most as many are left as can wait. One call may return only some of them.
        let mut most = receiver.slots();
        while most > 0 {
            let n = receiver.receive(most, |frame| {
                // A frame that cannot become a packet has come up, too.
                unread += u64::from(frame.map_or(true, |p| is_counted(points, &p)));
            });
            most = if n == 0 { 0 } else { most.saturating_sub(n) };
        }
        unread
    }
    fn receives(&self) -> Option<&str> {
        self.args.is_xdp().then_some(self.args.devname.0.as_str())
    }
}
