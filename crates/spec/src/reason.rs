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

            /// One line that explains the reason.
            pub const fn doc(self) -> &'static str {
                match self { $(Reason::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

reasons! {
    /// Discarded on purpose, by an element such as Discard.
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
    /// Not a packet that the element answers.
    NotAnswered = "not-answered",
    /// The element used up the packet.
    Consumed = "consumed",
    /// Waited for an ARP answer and was dropped to make room.
    ArpQueueFull = "arp-queue-full",
    /// An ARP packet that was malformed or not for this element.
    BadArp = "bad-arp",
    /// The destination IP address annotation was not set.
    NoDestination = "no-destination",
    /// The paint colour was not the one checked for.
    OtherPaint = "other-paint",
    /// Went round a cycle of the configuration too often.
    PushLoop = "push-loop",
    /// No buffer was free.
    NoBuffer = "no-buffer",
    /// Still inside the router when it stopped.
    Stopped = "stopped",
    /// A script decided to drop the packet.
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
    /// Was stored, then removed by a handler or because the capacity was reduced.
    Cleared = "cleared",
    /// The device did not accept the packet.
    SendFailed = "send-failed",
    /// A checksum or segmentation that a device had left open could not be completed.
    BadOffload = "bad-offload",
    /// Only a part of the packet could be received.
    Truncated = "truncated",
    /// The packet arrived, or would have left, at a port that is suppressed.
    Suppressed = "suppressed",
    /// The destination is on the segment that the packet came from.
    SameSegment = "same-segment",
    /// A message of the spanning tree protocol that was malformed or out of range.
    BadBpdu = "bad-bpdu",
    /// No 802.1Q tag, where only tagged frames were wanted.
    Untagged = "untagged",
    /// Came faster than a rate allows.
    OverRate = "over-rate",
    /// The TCP, UDP or ICMP header, the length or the checksum did not pass the checks.
    BadTransport = "bad-transport-header",
    /// A congestion mark was due on a packet that does not take part in ECN (RFC 3168 section 5).
    NotEcnCapable = "not-ecn-capable",
    /// A fragment that overlaps, repeats or contradicts others, or ends where no packet can.
    BadFragment = "bad-fragment",
    /// The rest of a fragmented packet did not come in time.
    ReassemblyTimeout = "reassembly-timeout",
    /// A fragment that had to make room for others.
    ReassemblyFull = "reassembly-full",
    /// The socket has no peer.
    NotConnected = "not-connected",
    /// Belongs to no flow of a rewriter, and its input creates none.
    NoMapping = "no-mapping",
    /// A rewriter cannot handle the packet: another protocol, a later fragment, or a truncated packet.
    NotRewritable = "not-rewritable",
    /// Every address and port of a rewriter's pattern was taken.
    PatternFull = "pattern-full",
    /// A table of flows was full, and no flow was old enough to be removed.
    TableFull = "table-full",
    /// Carries an FTP command that names another host (RFC 2577 section 3).
    RefusedCommand = "refused-command",
    /// Dropped before a queue was full, so that senders slow down.
    EarlyDrop = "early-drop",
    /// Has a source route that this router does not follow or cannot follow.
    SourceRoute = "source-route",
    /// The CRC-32 at its end was wrong.
    BadCrc = "bad-crc",
    /// The element panicked while it had the packet, or is disabled because it panicked.
    Panicked = "panicked",
    /// The data was not at an address with the alignment checked for.
    Misaligned = "misaligned",
    /// No memory was left for the data of the segment.
    NoMemory = "no-memory",
    /// An ICMP error about a segment that is not in flight, or of no connection.
    StaleError = "stale-error",
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
