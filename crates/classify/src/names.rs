// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of ports, IP protocols, ICMP messages and TCP flags, and the interface to external name tables.

/// Names defined outside this crate: address tables of a configuration, the services database. Every method may
/// return `None`.
pub trait Names {
    /// The IP address called `name`.
    fn ip(&self, name: &str) -> Option<[u8; 4]> {
        let _ = name;
        None
    }
    /// The network (address, mask) called `name`.
    fn net(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let _ = name;
        None
    }
    /// The Ethernet address called `name`.
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        let _ = name;
        None
    }
    /// The port called `name`, for IP protocol `proto` if known. Takes precedence over [`port_number`].
    fn port(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let _ = (name, proto);
        None
    }
    /// The port of the service called `name` in a database of the machine. Called only for names that have no
    /// other meaning.
    fn service(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let _ = (name, proto);
        None
    }
}

/// An empty name table: only the tables of this crate apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}

/// Port names with their numbers. If several names have the same port, the first one is printed.
pub const PORTS: &[(&str, u16)] = &[
    ("auth", 113),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("dns", 53),
    ("domain", 53),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("https", 443),
    ("imap3", 220),
    ("imaps", 993),
    ("irc", 194),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nntp", 119),
    ("ntp", 123),
    ("pop3", 110),
    ("pop3s", 995),
    ("pptp", 1723),
    ("rip", 520),
    ("route", 520),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("ssh", 22),
    ("sunrpc", 111),
    ("telnet", 23),
    ("tftp", 69),
    ("www", 80),
];

/// IP protocol names with their numbers (IANA assigned internet protocol numbers).
pub const IP_PROTOS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("udp", 17),
    ("dccp", 33),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// ICMP message types (RFC 792, 950, 1256).
pub const ICMP_TYPES: &[(&str, u8)] = &[
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
];

/// ICMP codes: (type, name, code) (RFC 792, 1122 §3.2.2.1, 1812 §5.2.7.1).
pub const ICMP_CODES: &[(u8, &str, u8)] = &[
    (3, "net", 0),
    (3, "host", 1),
    (3, "protocol", 2),
    (3, "port", 3),
    (3, "needfrag", 4),
    (3, "srcroutefail", 5),
    (3, "netunknown", 6),
    (3, "hostunknown", 7),
    (3, "isolated", 8),
    (3, "netprohibited", 9),
    (3, "hostprohibited", 10),
    (3, "tosnet", 11),
    (3, "toshost", 12),
    (3, "filterprohibited", 13),
    (3, "hostprecedence", 14),
    (3, "precedencecutoff", 15),
    (5, "net", 0),
    (5, "host", 1),
    (5, "tosnet", 2),
    (5, "toshost", 3),
    (11, "transit", 0),
    (11, "reassembly", 1),
    (12, "erroratptr", 0),
    (12, "missingopt", 1),
    (12, "length", 2),
];

/// TCP flags with their bit in the flags byte (RFC 9293 §3.1).
pub const TCP_FLAGS: &[(&str, u8)] =
    &[("fin", 0x01), ("syn", 0x02), ("rst", 0x04), ("psh", 0x08), ("ack", 0x10), ("urg", 0x20)];

fn number<N: Copy>(table: &[(&str, N)], name: &str) -> Option<N> {
    table.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn name<N: Copy + PartialEq>(table: &[(&'static str, N)], number: N) -> Option<&'static str> {
    table.iter().find(|row| row.1 == number).map(|row| row.0)
}

/// The port called `name`.
pub fn port_number(name: &str) -> Option<u16> {
    number(PORTS, name)
}

/// The IP protocol called `name`.
pub fn ip_proto_number(name: &str) -> Option<u8> {
    number(IP_PROTOS, name)
}

/// The name of IP protocol `proto`.
pub fn ip_proto_name(proto: u8) -> Option<&'static str> {
    name(IP_PROTOS, proto)
}

/// The ICMP type called `name`.
pub fn icmp_type_number(name: &str) -> Option<u8> {
    number(ICMP_TYPES, name)
}

/// The name of ICMP type `icmp_type`.
pub fn icmp_type_name(icmp_type: u8) -> Option<&'static str> {
    name(ICMP_TYPES, icmp_type)
}

/// The code called `name` of ICMP type `icmp_type`.
pub fn icmp_code_number(icmp_type: u8, name: &str) -> Option<u8> {
    ICMP_CODES.iter().find(|row| row.0 == icmp_type && row.1 == name).map(|row| row.2)
}

/// The name of `code` of ICMP type `icmp_type`.
pub fn icmp_code_name(icmp_type: u8, code: u8) -> Option<&'static str> {
    ICMP_CODES.iter().find(|row| row.0 == icmp_type && row.2 == code).map(|row| row.1)
}

/// The bit of the TCP flag called `name`.
pub fn tcp_flag(name: &str) -> Option<u8> {
    number(TCP_FLAGS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_read_both_ways() {
        for &(n, p) in PORTS {
            assert_eq!(port_number(n), Some(p));
        }
        for &(n, p) in IP_PROTOS {
            assert_eq!((ip_proto_number(n), ip_proto_name(p)), (Some(p), Some(n)));
        }
        for &(n, t) in ICMP_TYPES {
            assert_eq!((icmp_type_number(n), icmp_type_name(t)), (Some(t), Some(n)));
        }
        for &(t, n, c) in ICMP_CODES {
            assert_eq!((icmp_code_number(t, n), icmp_code_name(t, c)), (Some(c), Some(n)));
        }
        for &(n, b) in TCP_FLAGS {
            assert_eq!(tcp_flag(n), Some(b));
        }
        assert_eq!((port_number("nonesuch"), icmp_code_number(3, "transit")), (None, None));
    }

    #[test]
    fn no_names_knows_nothing() {
        let n = NoNames;
        assert_eq!((n.ip("a"), n.net("a"), n.ether("a"), n.port("a", None)), (None, None, None, None));
    }
}
