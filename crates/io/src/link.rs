// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link types of capture files: their numbers, and the words that configurations use for some of them.
use std::fmt;

/// The type of the link header of packets: a LINKTYPE_ number (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u32);

/// The values of `ENCAP` arguments, each with the link type that it stands for.
const WORDS: [(&str, u32); 12] = [
    ("ETHER", 1),
    ("IP", 101),
    ("NULL", 0),
    ("PPP", 9),
    ("FDDI", 10),
    ("PPP_HDLC", 50),
    ("ATM", 100),
    ("HDLC", 104),
    ("802_11", 105),
    ("LINUX_SLL", 113),
    ("SUNATM", 123),
    ("RADIOTAP", 127),
];

/// Names of link types that occur in practice but have no `ENCAP` word, from the registry of link types
/// (<https://www.tcpdump.org/linktypes.html>).
const NAMES: [(&str, u32); 31] = [
    ("AX25", 3),
    ("IEEE802_5", 6),
    ("ARCNET_BSD", 7),
    ("SLIP", 8),
    ("PPP_ETHER", 51),
    ("FRELAY", 107),
    ("LOOP", 108),
    ("PFLOG", 117),
    ("IEEE802_11_PRISM", 119),
    ("IP_OVER_FC", 122),
    ("ARCNET_LINUX", 129),
    ("DOCSIS", 143),
    ("LINUX_IRDA", 144),
    ("USER0", 147),
    ("IEEE802_11_AVS", 163),
    ("BLUETOOTH_HCI_H4", 187),
    ("USB_LINUX", 189),
    ("PPI", 192),
    ("IEEE802_15_4_WITHFCS", 195),
    ("BLUETOOTH_HCI_H4_WITH_PHDR", 201),
    ("USB_LINUX_MMAPPED", 220),
    ("CAN_SOCKETCAN", 227),
    ("IEEE802_15_4_NOFCS", 230),
    ("NFLOG", 239),
    ("NETANALYZER", 240),
    ("INFINIBAND", 247),
    ("USBPCAP", 249),
    ("BLUETOOTH_LE_LL", 251),
    ("NETLINK", 253),
    ("ETHERNET_MPACKET", 274),
    ("LINUX_SLL2", 276),
];

impl LinkType {
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without link header.
    pub const RAW_IP: LinkType = LinkType(101);

    /// Whether packets begin with an Ethernet header.
    pub fn is_ethernet(self) -> bool {
        self == LinkType::ETHERNET
    }

    /// Whether packets begin with an IP header. This holds for the types 101, 228 (IPv4 only) and 229 (IPv6 only), and
    /// for 12 and 14, which operating systems used before 101 was assigned.
    pub fn is_raw_ip(self) -> bool {
        matches!(self.0, 12 | 14 | 101 | 228 | 229)
    }

    /// The word for this type in `ENCAP` arguments and `encap` handlers, if there is one.
    pub fn word(self) -> Option<&'static str> {
        let number = if self.is_raw_ip() { LinkType::RAW_IP.0 } else { self.0 };
        WORDS.iter().find(|(_, n)| *n == number).map(|(word, _)| *word)
    }

    /// Parses an `ENCAP` word (in upper or lower case) or a decimal number.
    pub fn parse(text: &str) -> Option<LinkType> {
        match WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            Some((_, number)) => Some(LinkType(*number)),
            None => text.parse().ok().map(LinkType),
        }
    }

    /// The `ENCAP` words, for error messages and completion.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }
}

impl fmt::Display for LinkType {
    /// Formats the type as its `ENCAP` word, for example `ETHER`. A type without a word is formatted as its
    /// number, with its name if the name is known: `link type 220 (USB_LINUX_MMAPPED)`, `link type 9999`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = || NAMES.iter().find(|(_, n)| *n == self.0).map(|(name, _)| *name);
        match (self.word(), name()) {
            (Some(word), _) => f.write_str(word),
            (None, None) => write!(f, "link type {}", self.0),
            (None, Some(name)) => write!(f, "link type {} ({name})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_names() {
        for (word, number) in WORDS {
            assert_eq!(LinkType::parse(word), Some(LinkType(number)));
            assert_eq!(LinkType(number).word(), Some(word));
        }
        assert_eq!(LinkType::parse("ether"), Some(LinkType::ETHERNET));
        assert_eq!(LinkType::parse("220"), Some(LinkType(220)));
        assert_eq!(LinkType::parse("ETHERNETTE"), None);
        assert_eq!(LinkType(12).word(), Some("IP"));
        assert_eq!(LinkType(220).to_string(), "link type 220 (USB_LINUX_MMAPPED)");
        assert_eq!(LinkType(9999).to_string(), "link type 9999");
        assert_eq!(LinkType(1).to_string(), "ETHER");
    }
}
