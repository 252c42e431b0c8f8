// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters: expressions of `IPFilter` that select packets, outside of elements.

use castanet_classify::{Program, names};
use castanet_spec::{ArgCx, ArgValue as _, Prefix};
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

/// The names of a configuration, for the languages of classifiers. The port names of these languages take precedence over
/// the services database of the machine.
pub struct FilterNames<'a>(pub ArgCx<'a>);

impl names::Names for FilterNames<'_> {
    fn ip(&self, name: &str) -> Option<[u8; 4]> {
        Ipv4Addr::parse(name, &self.0).ok().map(|a| a.octets())
    }
    fn net(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let p = Prefix::read(name, &self.0, false).ok()?;
        Some((p.network().octets(), p.mask().octets()))
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        EtherAddr::parse(name, &self.0).ok().map(|a| a.0)
    }
    fn port(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let find = |p| self.0.names.defined_port(self.0.scope, name, p);
        proto.map_or_else(|| find(6).or_else(|| find(17)), find)
    }
    fn service(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let find = |p| self.0.names.port("", name, p);
        proto.map_or_else(|| find(6).or_else(|| find(17)), find)
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub struct Filter(Program);

impl Filter {
    /// Compiles an expression. An empty expression matches all packets.
    ///
    /// # Errors
    /// The expression has an error. The text says which.
    pub fn new(text: &str, cx: ArgCx<'_>) -> Result<Filter, String> {
        let text = if text.trim().is_empty() { "-" } else { text };
        let compiled = Program::from_ip_classifier(&[text], &FilterNames(cx));
        let (program, _) = compiled.map_err(|errors| {
            let texts: Vec<String> = errors.into_iter().map(|e| e.message).collect();
            texts.join("\n")
        })?;
        Ok(Filter(program))
    }

    /// Whether a packet matches. `data` are its bytes, and `network` those from its IP header on, if the packet has been
    /// marked with its position. If not, the header is searched for, in Ethernet frames also behind VLAN tags. Tests of an IP
    /// packet are false for other packets.
    pub fn matches(&self, data: &[u8], network: Option<&[u8]>) -> bool {
        let (ether, found) = split(data);
        self.0.classify_frame(ether, network.unwrap_or(found)).port() == Some(0)
    }
}

/// The IPv4 packet in a packet, which begins with it or with an Ethernet header. Empty if there is none.
pub fn network_of(data: &[u8]) -> &[u8] {
    split(data).1
}

/// Whether a packet begins with an IPv4 header.
pub fn is_ip_packet(data: &[u8]) -> bool {
    let (ether, network) = split(data);
    ether.is_empty() && !network.is_empty()
}

/// Splits a packet into its Ethernet header and the IPv4 packet. Each is empty if there is none.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    const IP: [u8; 2] = [0x08, 0x00];
    const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
    let mut at = 12;
    while let Some(kind) = data.get(at..).and_then(|d| d.first_chunk::<2>()) {
        let after = at + 2;
        if *kind == IP && is_ip(data.get(after..).unwrap_or_default()) {
            return data.split_at(after);
        }
        if !VLAN.contains(kind) || at > 16 {
            break;
        }
        at += 4;
    }
    if is_ip(data) { (&[], data) } else { (data.get(..14).unwrap_or_default(), &[]) }
}

/// Whether data may begin with an IPv4 header (RFC 791 §3.1).
fn is_ip(data: &[u8]) -> bool {
    let length = data.get(2..).and_then(|d| d.first_chunk::<2>()).map_or(0, |l| u16::from_be_bytes(*l));
    data.first().is_some_and(|b| b >> 4 == 4 && b & 0x0f >= 5) && usize::from(length) <= data.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use castanet_spec::Names;

    /// An IPv4 packet from 10.0.0.1 to 10.0.0.2 with this protocol.
    fn ip(protocol: u8) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        p.extend([0, 7, 0, 9, 0, 8, 0, 0]);
        p
    }
    fn frame(between: &[u8], payload: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], between, payload].concat()
    }

    #[test]
    fn packets_match_wherever_their_ip_header_is() {
        let names = Names::default();
        let cx = || ArgCx { scope: "", names: &names, origin: names.origin() };
        let filter = |text| Filter::new(text, cx()).unwrap();
        let udp = filter("udp && dst 10.0.0.2 && src port 7");
        let cases: [(Vec<u8>, bool); 8] = [
            (ip(17), true),
            (ip(6), false),
            (frame(&[8, 0], &ip(17)), true),
            (frame(&[0x81, 0, 0, 5, 8, 0], &ip(17)), true),
            (frame(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &ip(17)), true),
            (frame(&[8, 6], &ip(17)), false),
            (frame(&[8, 0], &ip(17)[..19]), false),
            (Vec::new(), false),
        ];
        for (i, (data, want)) in cases.iter().enumerate() {
            assert_eq!(udp.matches(data, None), *want, "case {i}");
            assert!(filter("").matches(data, None) && filter("-").matches(data, None), "case {i}");
        }
        // The annotation takes precedence.
        let shifted = [&[1, 2, 3][..], &ip(17)].concat();
        assert!(!udp.matches(&shifted, None) && udp.matches(&shifted, Some(&shifted[3..])));
        assert!(Filter::new("frobnicate 7", cx()).unwrap_err().contains("frobnicate"));
    }
}
