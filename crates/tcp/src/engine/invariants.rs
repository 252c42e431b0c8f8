// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of an engine between any two calls. Tests and the fuzz target check them.

use super::Engine;
use crate::protocol::{Tcb, f, s, seq_le};

/// Checks what always holds.
///
/// # Panics
/// When something does not hold.
pub fn check(e: &Engine) {
    let mut data = 0;
    let mut half_open = 0;
    for tcb in e.connections.tcbs() {
        let t = e.tcb(tcb);
        assert!(t.live.get(), "the TCB of a connection lives");
        let sent = e.connections.peek(tcb).map(|c| {
            assert_eq!(e.flows.get(&c.flow), Some(&tcb));
            assert!(c.receive.len() <= e.host.settings.rcvbuf.max(65_535) + 1460, "{}", c.receive.len());
            assert!(c.send.len() <= e.host.settings.sndbuf);
            assert!(!(c.stirred || c.ended.is_some()), "the application has seen everything");
            data += c.size();
            half_open += usize::from(c.half_open);
            c.send.len()
        });
        check_tcb(t, sent.unwrap_or_default() as u32);
    }
    assert_eq!(data, e.host.memory.used());
    assert_eq!(half_open, e.half_open);
    if let Some((flow, tcb)) = e.last_found.get() {
        assert_eq!(e.flows.get(&flow), Some(&tcb), "the connection that was found last is still there");
    }
    assert!(e.flows.len() <= e.host.settings.connections);
    assert!(!e.host.muted.get() && e.host.cookie.get().is_none());
}

/// Invariants of a TCB whose send queue has so many bytes.
fn check_tcb(t: &Tcb, queued: u32) {
    let [una, next, max] = [&t.snd_una, &t.snd_next, &t.snd_max].map(|n| n.get());
    assert!(seq_le(una, next) && seq_le(next, max), "{una} <= {next} <= {max}");
    let left = t.buffer_left.get();
    assert!(seq_le(left.wrapping_sub(1), una), "{left} - 1 <= {una}");
    let end = left.wrapping_add(queued).wrapping_add(1);
    assert!(seq_le(max, end), "{max} <= {left} + {queued} + 1");
    assert!(seq_le(una, t.snd_up.get()) && seq_le(t.snd_up.get(), end));
    assert!(t.held_count.get() <= 64);
    assert!(t.mss.get() >= 64 && t.mss.get() <= 1460, "{}", t.mss.get());
    assert!(t.state.get() > s::LISTEN && t.state.get() <= s::TIME_WAIT);
    let in_flight = max != una;
    let sends = t.state.get() != s::TIME_WAIT && t.flags.get() & f::SYN_LOST == 0;
    let timer = t.retransmit_ticks.get() > 0 || t.persist_ticks.get() > 0;
    assert!(!(in_flight && sends) || timer, "what is in flight has a timer, in state {}", t.state.get());
}
