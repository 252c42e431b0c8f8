// SPDX-License-Identifier: MIT OR Apache-2.0
//! What FromDevice takes over from the old router in a hot swap.

use super::source::{Open, Source};
use super::{FromDevice, LOOK};
use crate::device::intake::{Intake, default_headroom};
use castanet_element::Interest;
use castanet_element::prelude::*;
use castanet_io::device::{self, Shield};
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of frames that are read from one socket during a hot swap, even if its ring has more
/// slots.
const MOST_MOVED: usize = 1 << 16;

impl FromDevice {
    /// Checks that the device has the link type that ENCAP demands. Called when the element takes over a socket;
    /// for a new socket, `open` makes this check. If the device is gone, the check is made when it is back.
    pub(super) fn check_link(&mut self) -> Result<(), ElementError> {
        let name = &self.args.devname.0;
        match (self.args.encap, device::link_info(name)) {
            (Some(wanted), Ok(info)) if wanted.0 != info.link => {
                Err(format!("{name}: its link type is {}, not {}", info.link, wanted.0).into())
            }
            _ => Ok(()),
        }
    }

    /// Takes over the socket, with the frames that wait in its ring. First gives the open socket the new settings: if
    /// that fails, nothing has moved yet.
    pub(super) fn inherit(&mut self, old: &mut FromDevice, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let Some(Open { source, .. }) = &mut old.open else { return Ok(()) };
        if !old.lost {
            if self.needs_shield() && old.shield.is_none() && self.shield.is_none() {
                self.shield = Some(Shield::raise(&self.args.devname.0).map_err(ElementError::refused)?);
            }
            let (before, now) = (old.options.promiscuous, self.options.promiscuous);
            source.set_promiscuous(before, now).map_err(ElementError::refused)?;
            source.set_outgoing(self.options.outgoing);
        }
        let Some(Open { source, watches }) = old.open.take() else { return Ok(()) };
        watches.into_iter().for_each(|watch| old.left.keep(watch));
        self.left.end(cx);
        if !self.args.sniffer && old.shield.is_some() {
            self.shield = old.shield.take();
        }
        self.link = source.link();
        let headroom = self.args.headroom.map_or(default_headroom(self.link), |n| n as usize);
        self.intake = Intake::new(headroom, self.link);
        (self.lost, self.ether) = (old.lost, old.ether);
        // The count moves with the socket, so that these drops are counted only once.
        self.drops_before = std::mem::take(&mut old.drops_before);
        self.counted_drops = std::mem::take(&mut old.counted_drops);
        self.waiting.append(&mut old.waiting);
        self.from_old = self.waiting.len();
        if let Some(Open { watches, .. }) = self.open.take() {
            watches.into_iter().for_each(|mine| cx.unwatch(mine));
        }
        let watches = source.fds().into_iter().map(|fd| cx.watch(fd, Interest::Read)).collect();
        self.open = Some(Open { source, watches });
        if self.lost {
            let now = cx.now();
            cx.set_timer(0, now.saturating_add(LOOK));
        }
        cx.schedule();
        Ok(())
    }

    /// Takes over the received frames of the old router's element. Does nothing if the socket itself was taken over. If
    /// it was not, for example because the filter differs, both sockets receive the same frames for some time. To emit
    /// each frame once, this element takes the frames that arrived up to now from the old socket, and later frames from
    /// its own socket.
    pub(super) fn follow(&mut self, old: &mut FromDevice, cx: &mut Cx<'_>) {
        if old.args.devname != self.args.devname {
            return;
        }
        // `followed` is set only after a failed swap. In that case, `old` is the element of the new router, which has
        // taken frames from this element. Take back these frames. All later frames are in the socket of this element.
        if std::mem::take(&mut self.followed) {
            let n = std::mem::take(&mut old.from_old).min(old.waiting.len());
            self.waiting.extend(old.waiting.drain(..n));
            cx.schedule();
            return;
        }
        let (Some(mine), Some(theirs)) = (&mut self.open, &mut old.open) else { return };
        old.followed = true;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let before = |time: i64| time <= now;
        self.waiting.append(&mut old.waiting);
        receive(&mut theirs.source, &mut old.intake, before, &mut self.waiting, cx);
        self.from_old = self.waiting.len();
        receive(&mut mine.source, &mut self.intake, |time| !before(time), &mut self.waiting, cx);
        cx.schedule();
    }

    /// Emits packets from `waiting`. They precede all frames that are still to be received.
    #[cold]
    pub(super) fn emit_waiting(&mut self, most: usize, cx: &mut Cx<'_>) {
        for _ in 0..most {
            let Some(p) = self.waiting.pop_front() else { break };
            self.emit(p, cx);
        }
        self.from_old = 0;
    }
}

/// Receives all waiting frames, and appends a packet to `into` for each frame whose arrival time `keep` accepts.
pub(super) fn receive(
    source: &mut Source,
    intake: &mut Intake,
    keep: impl Fn(i64) -> bool,
    into: &mut std::collections::VecDeque<Packet>,
    cx: &mut Cx<'_>,
) {
    let most = source.slots().min(MOST_MOVED);
    source.receive(most, intake, keep, cx, |p| into.push_back(p));
}
