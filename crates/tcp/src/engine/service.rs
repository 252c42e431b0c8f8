// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service that the packets of a connection ask of the network: their type of service, and whether they take a source route.

/// The codepoint ECT(0) of RFC 3168, section 5.
const ECT: u16 = 2;
/// The bits of ECN in the type of service.
const ECN: u16 = 3;
/// The packets have a source route. The bits below are the type of service.
const ROUTED: u16 = 1 << 8;

/// See above. A word, because it is looked at for each segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Service(u16);

impl Service {
    /// The service with this Differentiated Services codepoint, of six bits (RFC 2474, section 3).
    pub(super) fn of(dscp: u8) -> Service {
        Service(u16::from(dscp << 2))
    }
    pub(super) fn with_dscp(self, dscp: u8) -> Service {
        Service(self.0 & !0xff | Service::of(dscp).0)
    }
    /// Routers may mark the packets, or may not.
    pub(super) fn with_marks(self, may: bool) -> Service {
        Service(self.0 & !ECN | if may { ECT } else { 0 })
    }
    pub(super) fn with_route(self, routed: bool) -> Service {
        Service(self.0 & 0xff | if routed { ROUTED } else { 0 })
    }
    pub(super) fn is_routed(self) -> bool {
        self.0 & ROUTED != 0
    }
    pub(super) fn tos(self) -> u8 {
        self.0 as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_disturb_each_other() {
        let s = Service::of(46).with_route(true).with_marks(true);
        assert_eq!((s.tos(), s.is_routed()), (46 << 2 | 2, true));
        assert_eq!(s.with_dscp(63).with_marks(true), Service::of(63).with_route(true).with_marks(true));
        assert_eq!(s.with_marks(false).tos(), 46 << 2);
        assert_eq!((s.with_route(false).tos(), s.with_route(false).is_routed()), (s.tos(), false));
    }
}
