// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that all connections share.

use super::outbox::Outbox;
use super::sequence::Sequence;
use super::time::SLOW;
use super::{Memory, Route, Settings};
use crate::local::Poller;
use castanet_wire::ipv4::{DONT_FRAGMENT, Ipv4Header, protocol};
use castanet_wire::{Be16, Be32};
use std::cell::{Cell, OnceCell, RefCell};

/// Notes on the IP header of the segment that has arrived: the constants of the module TH, and the way back.
pub(super) struct Noted {
    pub(super) flags: Cell<u32>,
    pub(super) back: Cell<Route>,
}

/// The state that all connections share.
pub(super) struct Host {
    /// The packets to be sent.
    pub(super) out: RefCell<Outbox>,
    pub(super) memory: Memory,
    pub(super) sequence: Sequence,
    pub(super) settings: Settings,
    now: Cell<i64>,
    milliseconds: Cell<u32>,
    /// When the last slow timeout was due.
    last_tick: Cell<i64>,
    /// How often connections had been retransmitting for so long that their applications are told.
    pub(super) unanswered: Cell<u64>,
    /// The initial sequence number of the next connection, if a SYN cookie or an old connection has fixed it.
    pub(super) cookie: Cell<Option<u32>>,
    /// Segments are not sent: a SYN is being repeated that was answered before.
    pub(super) muted: Cell<bool>,
    /// Notes on the IP header of the segment that has arrived, beside the addresses.
    pub(super) noted: Noted,
    /// The identification of the last IP packet.
    identification: Cell<u16>,
    /// Segments for which there was no buffer.
    pub(super) unsent: Cell<u64>,
    /// The local sockets, if there are any.
    pub(super) poller: OnceCell<Poller>,
}

impl Host {
    pub(super) fn new(settings: Settings, sequence: Sequence) -> Host {
        Host {
            out: RefCell::default(),
            memory: Memory::new(settings.memory),
            identification: Cell::new(sequence.first_identification()),
            sequence,
            settings,
            now: Cell::new(0),
            milliseconds: Cell::new(0),
            last_tick: Cell::new(0),
            unanswered: Cell::new(0),
            cookie: Cell::new(None),
            muted: Cell::new(false),
            noted: Noted { flags: Cell::new(0), back: Cell::new(Route::DIRECT) },
            unsent: Cell::new(0),
            poller: OnceCell::new(),
        }
    }

    pub(super) fn now(&self) -> i64 {
        self.now.get()
    }
    pub(super) fn set_now(&self, now: i64) {
        if self.now.replace(now) != now {
            self.milliseconds.set((now / 1_000_000) as u32);
        }
    }
    pub(super) fn set_last_tick(&self, at: i64) {
        self.last_tick.set(at);
    }
    /// The slow timeouts that began before now and are still to come: the current one, and one that is late. However late, it
    /// is one.
    pub(super) fn ticks_begun(&self) -> u32 {
        let since = self.now.get().saturating_sub(self.last_tick.get());
        u32::from(since > 0) + u32::from(since > SLOW)
    }
    /// The time in milliseconds.
    pub(super) fn milliseconds(&self) -> u32 {
        self.milliseconds.get()
    }

    /// The identification of the next IP packet.
    pub(super) fn identify(&self) -> u16 {
        let id = self.identification.get().wrapping_add(1);
        self.identification.set(id);
        id
    }
    /// The header of an IP packet of this host with a TCP segment, which may be fragmented or not.
    #[inline]
    pub(super) fn ip_header(
        &self,
        tos: u8,
        (src, dst): (u32, u32),
        length: u16,
        dont_fragment: bool,
    ) -> Ipv4Header {
        let header = Ipv4Header {
            version_ihl: 0x45,
            tos,
            total_len: Be16::new(length),
            id: Be16::new(self.identify()),
            fragment: Be16::new(if dont_fragment { DONT_FRAGMENT } else { 0 }),
            ttl: self.settings.ttl,
            protocol: protocol::TCP,
            checksum: Be16::new(0),
            src: Be32::new(src),
            dst: Be32::new(dst),
        };
        header.with_checksum20()
    }
}
