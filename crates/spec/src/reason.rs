// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a packet was dropped: one central list, so that every drop has a counter with a name.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason { $($(#[doc = $doc])+ $variant,)+ }

        impl Reason {
            /// Every reason, in the order of its number.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)+];

            /// The kebab-case name in counters and summaries.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)+ }
            }

            /// One line on what it means.
            pub const fn doc(self) -> &'static str {
                match self { $(Reason::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

reasons! {
    /// Discarded on purpose, by a class that exists for it.
    Discarded = "discarded",
    /// Sent to an output that does not exist.
    NoPort = "no-port",
    /// No pattern of a classifier matched.
    NoMatch = "no-match",
    /// A queue was full.
    QueueFull = "queue-full",
    /// The switch was off.
    SwitchedOff = "switched-off",
    /// Too short for what the element had to do.
    TooShort = "too-short",
    /// No room before the data for a header.
    NoHeadroom = "no-headroom",
    /// The IP header did not pass the checks of RFC 1812 section 5.2.2.
    BadIpHeader = "bad-ip-header",
    /// No IP header was marked in the packet.
    NoIpHeader = "no-ip-header",
    /// The time to live expired.
    TtlExpired = "ttl-expired",
    /// An IP option was malformed.
    BadIpOption = "bad-ip-option",
    /// Larger than the MTU and not to be fragmented.
    MustFragment = "must-fragment",
    /// No route to the destination.
    NoRoute = "no-route",
    /// Received as a link-level broadcast or multicast.
    LinkBroadcast = "link-broadcast",
    /// No ICMP error may be sent about this packet (RFC 1812 section 4.3.2.7).
    NoIcmpError = "no-icmp-error",
    /// Not a packet the element answers.
    NotAnswered = "not-answered",
    /// The element took what it wanted from the packet.
    Consumed = "consumed",
    /// Waited for an ARP answer and had to make room.
    ArpQueueFull = "arp-queue-full",
    /// An ARP packet that was malformed or not for this element.
    BadArp = "bad-arp",
    /// The destination IP address annotation was not set.
    NoDestination = "no-destination",
    /// Colour other than the one checked for.
    OtherPaint = "other-paint",
    /// Went round a cycle of the configuration too often.
    PushLoop = "push-loop",
    /// No buffer was free.
    NoBuffer = "no-buffer",
    /// Still inside the router when it stopped.
    Stopped = "stopped",
    /// A script said so.
    Script = "script",
    /// Left out by sampling.
    Sampled = "sampled",
    /// Not IP where only IP was wanted.
    NotIp = "not-ip",
    /// Outside the wanted span of time.
    OutsideTime = "outside-time",
    /// A file could not be written.
    WriteFailed = "write-failed",
    /// The element was switched to inactive.
    Inactive = "inactive",
    /// The packet would have become too long.
    TooLong = "too-long",
    /// A source address that no packet may have (RFC 1812 section 5.3.7).
    BadSource = "bad-source",
    /// Addressed at link level to another host.
    OtherHost = "other-host",
    /// Sent at link level by this host itself.
    OwnPacket = "own-packet",
    /// Waited for an ARP answer that did not come in time.
    ArpTimeout = "arp-timeout",
    /// Was stored, and a handler or a smaller capacity cleared it out.
    Cleared = "cleared",
    /// The device did not take it.
    SendFailed = "send-failed",
    /// A checksum or segments that a device left to be done could not be done.
    BadOffload = "bad-offload",
    /// Only a part of it could be received.
    Truncated = "truncated",
    /// The port it came or left by was suppressed.
    Suppressed = "suppressed",
    /// Its destination is where it came from.
    SameSegment = "same-segment",
    /// A message of the spanning tree protocol that was malformed or out of range.
    BadBpdu = "bad-bpdu",
    /// No 802.1Q tag, where only tagged frames were wanted.
    Untagged = "untagged",
    /// Came faster than a rate allows.
    OverRate = "over-rate",
    /// The TCP, UDP or ICMP header, the length or the checksum did not pass the checks.
    BadTransport = "bad-transport-header",
    /// A mark of congestion was due on a packet that does not take part in ECN (RFC 3168 section 5).
    NotEcnCapable = "not-ecn-capable",
    /// A fragment that overlaps, repeats or contradicts others, or ends where no packet can.
    BadFragment = "bad-fragment",
    /// The rest of a fragmented packet did not come in time.
    ReassemblyTimeout = "reassembly-timeout",
    /// A fragment that had to make room for others.
    ReassemblyFull = "reassembly-full",
    /// The socket has no peer.
    NotConnected = "not-connected",
    /// Belongs to no flow that a rewriter knows, and its input makes none.
    NoMapping = "no-mapping",
    /// A rewriter can make nothing of it: another protocol, a later fragment, cut short.
    NotRewritable = "not-rewritable",
    /// Every address and port of a rewriter's pattern was taken.
    PatternFull = "pattern-full",
    /// A table of flows was full, and none old enough to make room.
    TableFull = "table-full",
    /// Carries a command that points at somebody else (RFC 2577 section 3).
    RefusedCommand = "refused-command",
    /// Dropped before a queue was full, so that those who send slow down.
    EarlyDrop = "early-drop",
    /// Has a source route that is not followed here, or that cannot be.
    SourceRoute = "source-route",
    /// The CRC-32 at its end was wrong.
    BadCrc = "bad-crc",
    /// The element panicked while it had the packet, or is disabled because it panicked.
    Panicked = "panicked",
}

impl Reason {
    /// How many reasons there are.
    pub const COUNT: usize = Reason::ALL.len();
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_distinct() {
        let mut seen = std::collections::HashSet::new();
        for r in Reason::ALL {
            assert!(r.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{r}");
            assert!(seen.insert(r.name()), "{r} twice");
            assert!(!r.doc().trim().is_empty(), "{r}");
        }
        assert_eq!(seen.len(), Reason::COUNT);
    }
}
