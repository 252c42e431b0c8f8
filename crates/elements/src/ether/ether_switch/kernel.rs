// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches in the kernel: programs relay frames between known addresses. All other frames go up.

use super::copies::{Copies, STATIONS, at};
use super::relay::Relay;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Test};
use castanet_element::spec::Reason;
use castanet_element::{Attached, InKernel};
use std::sync::atomic::Ordering::Relaxed;

impl InKernel for Relay {
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered {
        let timeout = self.control.timeout();
        if self.listener.is_some() {
            return Err("its last output gets a copy of each frame".into());
        }
        if timeout <= 0 {
            return Err("it learns no addresses, so that each frame leaves on several ports".into());
        }
        if self.learning.get(input as usize).is_some_and(|l| l.load(Relaxed)) {
            return Err("its port learns, but does not relay".into());
        }
        let (up, same, old) = (code.label(), code.label(), code.label());
        code.need(14, up);
        let [source, destination] = [6, 0].map(|offset| {
            let (front, rest) = (code.load(offset, Size::Word), code.load(offset + 4, Size::Half));
            [(Size::Word, front.into()), (Size::Half, rest.into()), (Size::Half, 0u32.into())]
        });
        // The source is known on this port; a new one or another port is learnt at user level.
        let station = code.look_up(0, STATIONS, &source, up);
        let port = code.load_entry(station, at::PORT, Size::Word);
        code.branch(port, Test::Differ, input, up);
        let now = code.time();
        code.store_entry(station, at::HEARD, Size::Double, now);
        // The destination is known, and no group.
        let first = code.load(0, Size::Byte);
        code.branch(first, Test::Common, 1u32, up);
        let station = code.look_up(0, STATIONS, &destination, up);
        let heard = code.load_entry(station, at::HEARD, Size::Double);
        let end = code.compute(Arithmetic::Add, heard, timeout);
        code.branch_wide(now, Test::Greater, end, old);
        let port = code.load_entry(station, at::PORT, Size::Word);
        code.branch(port, Test::Equal, input, same);
        code.next_of(port, self.ports);
        code.bind(same);
        code.drop(Reason::SameSegment as u16);
        code.bind(old);
        code.up_in_order(station, STATIONS);
        code.bind(up);
        code.up();
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Table(_, table) = to {
            self.copies = Some(Copies::new(table));
        }
    }
}
