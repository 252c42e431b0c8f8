// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateIP: sets the aggregate annotation to a header field.

use super::header_field::HeaderField;
use castanet_element::prelude::*;
use castanet_spec::anno;

/// Sets the aggregate annotation to the value of a header field.
///
/// FIELD is a named field, such as `ip proto`, `tcp dport` or `ip tos`, or any bits: `ip[8]`, `ip[2:2]`,
/// `ip[0 bit 4:4]`. A prefix length selects the first bits of a named field, as in `ip dst/16`; a negative
/// length selects its last bits. The field has at most 32 bits and is read as a number: with `ip dst/16`,
/// packets to 2.0.0.0/16 get 512. With UNSHIFT_IP_ADDR, bits of an address keep their place in the address
/// and all other bits are zero. With INCREMENTAL, the previous aggregate is shifted to the left by the length
/// of the field, and the field's value fills the lower bits.
///
/// # Ports
/// Input 0: IP packets. Output 0: the same packets. Output 1 (optional): packets without the field; without
/// output 1 they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(1.2.3.4) -> MarkIPHeader
///   -> AggregateIP(ip dst/16) -> AggregateCounter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregateIP", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(handlers, drops(NoIpHeader))]
pub struct AggregateIp {
    args: Args,
}

/// Arguments of AggregateIP.
#[derive(Args)]
pub struct Args {
    /// The header field whose value becomes the aggregate.
    field: HeaderField,
    /// Whether to append the value to the bits of the previous aggregate.
    #[arg(keyword, default = false)]
    incremental: bool,
    /// Whether the selected bits of an address keep their position in the aggregate; all other bits are zero.
    #[arg(keyword, default = false)]
    unshift_ip_addr: bool,
}

impl Action for AggregateIp {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let field = &self.args.field;
        let Some(mut value) = field.of(p) else { return cx.out_or(1, Reason::NoIpHeader) };
        if self.args.unshift_ip_addr && field.is_address() {
            value <<= field.address_shift();
        } else if self.args.incremental {
            let before = u64::from(p.anno_u32(anno::AGGREGATE)) << field.bits;
            value |= (before & u64::from(u32::MAX)) as u32;
        }
        p.set_anno_u32(anno::AGGREGATE, value);
        Verdict::Next
    }
}

#[handlers]
impl AggregateIp {
    /// Always empty, as in Click; the handler `field` shows the header.
    #[read(merge = first)]
    fn header(&self) -> &'static str {
        ""
    }
    /// The number of bits in the header before the field.
    #[read(merge = first, unit = "bits")]
    fn bit_offset(&self) -> usize {
        self.args.field.offset
    }
    /// The length of the field in bits.
    #[read(merge = first, unit = "bits")]
    fn bit_length(&self) -> usize {
        self.args.field.bits
    }
    /// The field by name, such as `ip dst/16`. A field without a name is shown by its position: `HEADER[OFFSET:LENGTH]`
    /// for whole bytes, else `HEADER[OFFSET bit BIT:LENGTH]`.
    #[read(merge = first)]
    fn field(&self) -> String {
        self.args.field.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// An IPv4 packet with this protocol, from 1.2.3.4 port 10 to 5.6.7.8 port 20.
    fn ip(protocol: u8) -> Packet {
        let mut data =
            vec![0x45, 0xb9, 0, 40, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        data.extend([0, 10, 0, 20]);
        data.resize(40, 0);
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn values_of_fields() {
        for (field, value) in [
            ("ip dst/16", 0x0506),
            ("ip dst", 0x0506_0708),
            ("ip src", 0x0102_0304),
            ("ip src/8", 1),
            ("ip src/-8", 4),
            ("ip proto", 6),
            ("ip vers", 4),
            ("ip hl", 5),
            ("ip tos", 0xb9),
            ("ip dscp", 0xb9 >> 2),
            ("ip ecn", 1),
            ("ip len", 40),
            ("ip id", 0x1234),
            ("ip off", 0),
            ("ip df", 1),
            ("ip mf", 0),
            ("ip ttl", 64),
            ("tcp sport", 10),
            ("tcp dport", 20),
            ("tcp dport/8", 0),
            ("sport", 10),
            ("dport", 20),
            ("transp[0:2]", 10),
            ("ip[8]", 64),
            ("ip[2:2]", 40),
            ("ip[0 bit 4:4]", 5),
        ] {
            let mut kit = Kit::<AggregateIp>::new(field).unwrap();
            let (v, p) = kit.act1(ip(6));
            assert_eq!((v, p.anno_u32(anno::AGGREGATE)), (Verdict::Next, value), "{field}");
        }
    }

    #[test]
    fn arguments_and_handlers() {
        let mut kit = Kit::<AggregateIp>::new("ip dst/16").unwrap();
        for (handler, text) in
            [("header", ""), ("bit_offset", "128"), ("bit_length", "16"), ("field", "ip dst/16")]
        {
            assert_eq!(kit.read(handler).unwrap(), text);
        }
        for (field, shown) in [
            ("ip[16:2]", "ip dst/16"),
            ("ip[18:2]", "ip dst/-16"),
            ("ip[0 bit 4:4]", "ip hl"),
            ("ip dscp", "ip dscp"),
            ("tcp dport", "tcp dport"),
            ("tcp[2:2]", "tcp dport"),
            ("transp[2:2]", "transp[2:2]"),
            ("ip[20:4]", "ip[20:4]"),
            ("ip[3]", "ip len/-8"),
            ("ip[2 bit 1:3]", "ip[2 bit 1:3]"),
        ] {
            assert_eq!(Kit::<AggregateIp>::new(field).unwrap().read("field").unwrap(), shown);
            assert_eq!(Kit::<AggregateIp>::new(shown).unwrap().read("field").unwrap(), shown);
        }
        for bad in [
            "",
            "foo",
            "ip foo",
            "ip",
            "ip[",
            "ip[0:5]",
            "ip[70000]",
            "ip dst/33",
            "ip dst/0",
            "tcp[x]",
            "ip[0 bit 9:99]",
        ] {
            assert!(Kit::<AggregateIp>::new(bad).is_err(), "{bad}");
        }
        let agg = |config: &str, before: u32| {
            let mut p = ip(6);
            p.set_anno_u32(anno::AGGREGATE, before);
            Kit::<AggregateIp>::new(config).unwrap().act1(p).1.anno_u32(anno::AGGREGATE)
        };
        assert_eq!(agg("ip dst/16, UNSHIFT_IP_ADDR true", 9), 0x0506_0000);
        assert_eq!(agg("ip proto, UNSHIFT_IP_ADDR true", 9), 6);
        assert_eq!(agg("ip proto, INCREMENTAL true", 9), 9 << 8 | 6);
        assert_eq!(agg("ip dst, INCREMENTAL true", 9), 0x0506_0708);
    }

    #[test]
    fn packets_without_the_field() {
        for n in 0..60 {
            for config in ["ip dst", "tcp dport", "ip[60]"] {
                let mut p = ip(6);
                p.truncate(n);
                let mut kit = Kit::<AggregateIp>::with_ports(config, 1, 2).unwrap();
                assert_eq!(kit.act([p]).len(), 1);
            }
        }
        for (config, kind) in [("tcp dport", 17), ("udp sport", 6), ("icmp type", 6), ("dport", 1)] {
            let mut kit = Kit::<AggregateIp>::new(config).unwrap();
            assert_eq!((kit.act([ip(kind)]).len(), kit.dropped(Reason::NoIpHeader)), (0, 1), "{config}");
        }
        let mut fragment = ip(6);
        fragment.data_mut()[7] = 1;
        let mut kit = Kit::<AggregateIp>::with_ports("tcp dport", 1, 2).unwrap();
        assert_eq!(kit.act([fragment, packet(&[0; 40])]).iter().map(|o| o.0).collect::<Vec<_>>(), [1, 1]);
    }
}
