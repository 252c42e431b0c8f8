// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of fields: name, type, how to read the field from a packet, and how to write it to a draft.

use super::draft::Draft;
use super::field_type::{FieldType, Value};
use super::md5::md5;
use super::options::TcpOptions;
use super::view::View;
use FieldType::{Address, Ether, EtherType, Link, Number, Protocol, Time};

/// A field of summary dumps.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Other accepted names.
    pub synonyms: &'static [&'static str],
    /// The type of its values.
    pub kind: FieldType,
    /// A description in one line.
    pub doc: &'static str,
    get: for<'a> fn(&View<'a>) -> Option<Value<'a>>,
    put: fn(&mut Draft, &Value<'_>),
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Field) -> bool {
        self.name == other.name
    }
}

impl Field {
    /// Finds a field by its name or a synonym. Spaces count as `_`, and `src` means `ip_src`.
    pub fn find(name: &str) -> Option<&'static Field> {
        let name = name.replace(' ', "_");
        let named = |n: &str| FIELDS.iter().find(|f| f.name == n || f.synonyms.contains(&n));
        named(&name).or_else(|| if name.contains('_') { None } else { named(&format!("ip_{name}")) })
    }
    /// Reads the value of the field from a packet.
    pub fn get<'a>(&self, view: &View<'a>) -> Option<Value<'a>> {
        (self.get)(view)
    }
    /// Sets the field of a draft.
    pub fn put(&self, draft: &mut Draft, value: &Value<'_>) {
        (self.put)(draft, value);
    }
}

/// Converts a number of any width to a value.
fn number<'a>(n: Option<impl Into<u64>>) -> Option<Value<'a>> {
    n.map(|n| Value::Number(n.into()))
}

/// Converts bytes to a value.
fn bytes(b: Option<&[u8]>) -> Option<Value<'_>> {
    b.map(|b| Value::Bytes(b.into()))
}

/// Makes a function that sets a number in a draft, truncated to the width of the draft's field. The range was
/// checked when the value was parsed.
macro_rules! set {
    ($field:ident: $type:ty) => {
        |d, v| d.$field = Some(v.number() as $type)
    };
}
macro_rules! set_bytes {
    ($field:ident) => {
        |d, v| d.$field = Some(v.bytes().to_vec())
    };
}

macro_rules! fields {
    ($(#[doc = $doc:literal] $name:literal $([$($synonym:literal)+])?, $kind:expr, $get:expr, $put:expr;)+) => {
        /// Every field.
        pub static FIELDS: &[Field] = &[$(Field {
            name: $name, synonyms: &[$($($synonym),+)?], kind: $kind, doc: $doc, get: $get, put: $put,
        },)+];
    };
}

fields! {
    /// The time of the packet.
    "timestamp" ["utimestamp" "ts"], Time, |v| Some(Value::Time(v.time)), |d, v| d.time = Some(v.time());
    /// The time of the packet, with nanoseconds in binary dumps.
    "ntimestamp", FieldType::NanoTime, |v| Some(Value::Time(v.time)), |d, v| d.time = Some(v.time());
    /// Whole seconds of the time.
    "ts_sec" ["sec"], Number(4), |v| number(u32::try_from(v.time.div_euclid(1_000_000_000)).ok()), set!(seconds: u32);
    /// Microseconds within the second.
    "ts_usec" ["usec"], Number(4), |v| number(Some(v.time.rem_euclid(1_000_000_000) as u64 / 1000)), set!(micros: u32);
    /// The time in microseconds.
    "ts_usec1" ["usec1"], Number(8), |v| number(u64::try_from(v.time.div_euclid(1000)).ok()),
        |d, v| d.time = i64::try_from(v.number()).ok().and_then(|us| us.checked_mul(1000));
    /// The time of the first packet that this one represents.
    "first_timestamp" ["first_utimestamp" "first_ts"], Time, |v| Some(Value::Time(v.first_time)),
        |d, v| d.first_time = Some(v.time());
    /// The time of the first packet that this one represents, with nanoseconds in binary dumps.
    "first_ntimestamp", FieldType::NanoTime, |v| Some(Value::Time(v.first_time)), |d, v| d.first_time = Some(v.time());
    /// The number of packets that this one represents.
    "count" ["pkt_count" "packet_count"], Number(4), |v| number(Some(u64::from(v.extra_packets) + 1)), set!(count: u32);
    /// The paint annotation, as the number of a link.
    "link", Link, |v| number(Some(v.paint)), set!(paint: u8);
    /// The paint annotation.
    "paint", Number(1), |v| number(Some(v.paint)), set!(paint: u8);
    /// The paint annotation, as a direction.
    "direction", FieldType::Direction, |v| number(Some(v.paint)), set!(paint: u8);
    /// The aggregate annotation.
    "aggregate" ["agg"], Number(4), |v| number(Some(v.aggregate)), set!(aggregate: u32);
    /// The length of the packet in bytes, link header included.
    "wire_len" ["wire_length"], Number(4), |v| number(u32::try_from(v.wire_len()).ok()), set!(wire_len: u32);
    /// The source address.
    "ip_src", Address, |v| number(v.ip32(12)), set!(src: u32);
    /// The destination address.
    "ip_dst", Address, |v| number(v.ip32(16)), set!(dst: u32);
    /// The type of service byte.
    "ip_tos", Number(1), |v| number(v.ip8(1)), |d, v| {
        d.dscp = Some(v.number() as u8 >> 2);
        d.ecn = Some(v.number() as u8 & 3);
    };
    /// The differentiated services code point (RFC 2474).
    "ip_dscp", Number(1), |v| number(v.ip8(1).map(|t| t >> 2)), set!(dscp: u8);
    /// Explicit congestion notification (RFC 3168).
    "ip_ecn", FieldType::Ecn, |v| number(v.ip8(1).map(|t| t & 3)), set!(ecn: u8);
    /// The time to live.
    "ip_ttl", Number(1), |v| number(v.ip8(8)), set!(ttl: u8);
    /// The kind of fragment: first, later, or not fragmented.
    "ip_frag", FieldType::Fragment, |v| number(v.fragment_letter()), set!(fragment: u8);
    /// The offset of the fragment, with the flags "more fragments" and "don't fragment".
    "ip_fragoff", FieldType::FragmentOffset, |v| number(v.ip16(6).map(|f| f & 0x7fff)), set!(fragment_offset: u16);
    /// The identification.
    "ip_id", Number(2), |v| number(v.ip16(4)), set!(id: u16);
    /// The checksum of the IP header.
    "ip_sum", Number(2), |v| number(v.ip16(10)), set!(sum: u16);
    /// The protocol.
    "ip_proto" ["ip_p"], Protocol, |v| number(v.ip8(9)), set!(protocol: u8);
    /// The length of the IP header in bytes.
    "ip_hl", Number(1), |v| number(v.ip().map(|ip| ip.header.len() as u64)), set!(header_len: u8);
    /// The length of the IP packet in bytes.
    "ip_len" ["length"], Number(4), |v| number(v.ip().map(|ip| ip.len as u64)), set!(len: u32);
    /// The number of captured bytes of the IP packet.
    "ip_capture_len", Number(4), |v| number(v.ip().map(|ip| ip.captured.len() as u64)), set!(capture_len: u32);
    /// IP options.
    "ip_opt", FieldType::IpOptions, |v| bytes(v.ip().and_then(|ip| ip.header.get(20..))), set_bytes!(ip_options);
    /// The source port.
    "sport", Number(2), |v| number(v.port(0)), set!(sport: u16);
    /// The destination port.
    "dport", Number(2), |v| number(v.port(2)), set!(dport: u16);
    /// The ICMP type.
    "icmp_type", FieldType::IcmpTypeNumber, |v| number(v.icmp8(0)), set!(icmp_type: u8);
    /// The ICMP code.
    "icmp_code", FieldType::IcmpCodeNumber, |v| number(v.icmp8(1)), set!(icmp_code: u16);
    /// The name of the ICMP type.
    "icmp_type_name", FieldType::IcmpType, |v| number(v.icmp8(0)), set!(icmp_type: u8);
    /// The name of the ICMP code.
    "icmp_code_name", FieldType::IcmpCode,
        |v| number(v.icmp8(0).zip(v.icmp8(1)).map(|(t, c)| u16::from_be_bytes([t, c]))), set!(icmp_code: u16);
    /// The identifier of an ICMP query.
    "icmp_flowid", Number(2), |v| number(v.icmp_query(4)), set!(icmp_id: u16);
    /// The sequence number of an ICMP query.
    "icmp_seq", Number(2), |v| number(v.icmp_query(6)), set!(icmp_seq: u16);
    /// The MTU in an ICMP error "unreachable needfrag".
    "icmp_nextmtu", Number(2), |v| number(v.icmp_mtu()), set!(icmp_mtu: u16);
    /// The Ethernet source.
    "eth_src" ["ether_src"], Ether, |v| bytes(v.mac(6..12)), set_bytes!(eth_src);
    /// The Ethernet destination.
    "eth_dst" ["ether_dst"], Ether, |v| bytes(v.mac(0..6)), set_bytes!(eth_dst);
    /// The Ethernet type.
    "eth_type" ["ether_type"], EtherType, |v| number(v.mac(12..14).map(|t| t.iter().fold(0_u16, |n, b| n << 8 | u16::from(*b)))),
        set!(eth_type: u16);
    /// The payload: the data after the transport header.
    "payload", FieldType::Text, |v| bytes(v.payload()), set_bytes!(payload);
    /// The length of the payload, captured or not.
    "payload_len" ["payload_length"], Number(4), |v| number(v.payload_len().map(|n| n as u64)), set!(payload_len: u32);
    /// The MD5 digest of the payload.
    "payload_md5", FieldType::Md5, |v| v.payload().map(|p| Value::Bytes(md5(p).to_vec().into())), |_, _| {};
    /// The MD5 digest of the payload in hexadecimal digits.
    "payload_md5_hex", FieldType::Md5Hex, |v| v.payload().map(|p| Value::Bytes(md5(p).to_vec().into())), |_, _| {};
    /// The TCP sequence number.
    "tcp_seq" ["tcp_seqno"], Number(4), |v| number(v.tcp32(4)), set!(tcp_seq: u32);
    /// The TCP acknowledgement number.
    "tcp_ack" ["tcp_ackno"], Number(4), |v| number(v.tcp32(8)), set!(tcp_ack: u32);
    /// The length of the TCP header in bytes.
    "tcp_off", Number(1), |v| number(v.tcp16(12).map(|w| (w >> 12) * 4)), set!(tcp_off: u8);
    /// The TCP flags.
    "tcp_flags", FieldType::TcpFlags, |v| number(v.tcp16(12).map(|w| w & 0xfff)), set!(tcp_flags: u16);
    /// The TCP window.
    "tcp_window" ["tcp_win"], Number(2), |v| number(v.tcp16(14)), set!(tcp_window: u16);
    /// The TCP urgent pointer.
    "tcp_urp", Number(2), |v| number(v.tcp16(18)), set!(tcp_urgent: u16);
    /// TCP options.
    "tcp_opt", FieldType::TcpOptions(TcpOptions::All), |v| bytes(v.tcp_options()), set_bytes!(tcp_options);
    /// TCP options without timestamps.
    "tcp_ntopt", FieldType::TcpOptions(TcpOptions::NoTimestamp), |v| bytes(v.tcp_options()), |d, v| d.some_tcp_options(v);
    /// TCP options of selective acknowledgement.
    "tcp_sack", FieldType::TcpOptions(TcpOptions::Sack), |v| bytes(v.tcp_options()), |d, v| d.some_tcp_options(v);
    /// The length in the UDP header.
    "udp_len", Number(2), |v| number(v.udp16(4)), set!(udp_len: u16);
}
