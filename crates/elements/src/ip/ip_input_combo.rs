// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPInputCombo: does the first steps of an IP router in one element.

use super::check_ip_header::CheckIpHeader;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Paints Ethernet frames, strips their Ethernet headers, and checks the IPv4 headers.
///
/// This element does the same as `Paint(COLOR) -> Strip(14) -> CheckIPHeader(...) -> GetIPAddress(16)`. Bad packets are
/// dropped.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: IP packets with marked network header.
///
/// # Example
/// ```click
/// InfiniteSource(
///     DATA \<020000000001 020000000002 0800 4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>,
///     LIMIT 5, STOP true) -> IPInputCombo(1, INTERFACES 1.0.0.9/8 2.0.0.9/8) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPInputCombo", ports = "1/1", processing = "a/a", packets = "ether/ip", workers = replicate)]
#[class(effects(prints), drops(BadIpHeader, TooShort, BadSource), build, lifecycle, handlers)]
#[class(depends = packet)]
#[class(kernel)]
pub struct IpInputCombo {
    args: Args,
    #[counts]
    check: CheckIpHeader,
}

/// Arguments of IPInputCombo.
#[derive(Args)]
pub struct Args {
    /// The colour to paint packets with, 0 to 255.
    color: u8,
    /// Source addresses that are bad. A number is OFFSET.
    badsrc: Option<String>,
    /// Where the IP header starts, in bytes from the end of the Ethernet header. Default: 0.
    offset: Option<u32>,
    /// The router's networks, each written as the router's own address with a prefix length.
    #[arg(keyword)]
    interfaces: Option<String>,
    /// Destinations for which bad sources are accepted.
    #[arg(keyword)]
    gooddst: Option<String>,
    /// Whether to print a message for every bad packet, not only for the first. Default: false.
    #[arg(keyword)]
    verbose: Option<bool>,
    /// Whether the handler drop_details reports the number of bad packets by fault. Default: false.
    #[arg(keyword)]
    details: Option<bool>,
    /// Whether to check the checksum. Default: true.
    #[arg(keyword)]
    checksum: Option<bool>,
}

/// The length of an Ethernet header, in bytes.
const ETHER: usize = 14;

/// Builds one of the elements that a combined element consists of. `config` is the configuration string of that
/// element.
pub(super) fn part<T: Build>(config: &str, cx: &mut BuildCx<'_>) -> Result<T, ConfigError> {
    use castanet_element::spec::Args as _;
    let (args, errors) = T::Args::parse(config, cx.arg_cx());
    // The ranges of these errors refer to `config`. The user has written another configuration string, so each error
    // gets the range of the whole string.
    let errors = errors.into_iter().map(|e| ArgError { range: 0..usize::MAX, ..e });
    match args {
        Some(args) => T::build(args, cx),
        None => Err(ConfigError(errors.collect())),
    }
}

impl Build for IpInputCombo {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let number = args.badsrc.as_deref().and_then(|text| text.parse::<u32>().ok());
        if number.is_some() && args.offset.is_some() {
            return Err("BADSRC: not a list of addresses".into());
        }
        let offset = number.or(args.offset).unwrap_or(0).saturating_add(ETHER as u32);
        let mut config = format!("OFFSET {offset}");
        let switch = |on: Option<bool>| on.map(|on| on.to_string());
        for (keyword, value) in [
            ("BADSRC", args.badsrc.clone().filter(|_| number.is_none())),
            ("INTERFACES", args.interfaces.clone()),
            ("GOODDST", args.gooddst.clone()),
            ("VERBOSE", switch(args.verbose)),
            ("DETAILS", switch(args.details)),
            ("CHECKSUM", switch(args.checksum)),
        ] {
            if let Some(value) = value {
                config.push_str(&format!(", {keyword} {value}"));
            }
        }
        Ok(IpInputCombo { check: part(&config, cx)?, args })
    }
}

#[handlers]
impl IpInputCombo {
    /// Packets with a bad IP header.
    #[read(unit = "packets", merge = sum)]
    fn drops(&self) -> Counted {
        self.check.drops()
    }
    /// Packets with a bad IP header, by fault; an error unless DETAILS is true.
    #[read(merge = sum)]
    fn drop_details(&self) -> Result<Table, HandlerError> {
        self.check.drop_details()
    }
}

impl Lifecycle for IpInputCombo {
    fn effects(&self, declared: Effects) -> Effects {
        self.check.effects(declared)
    }
}

impl Action for IpInputCombo {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        p.set_paint(self.args.color);
        let verdict = self.check.action(p, cx);
        if verdict == Verdict::Next {
            p.strip(ETHER);
        }
        verdict
    }
}

impl InKernel for IpInputCombo {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.check.lower_tests(code, |code| {
            code.set_known_annotation(anno::PAINT, [self.args.color]);
            code.strip(ETHER as u32);
            code.next(0);
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::basic::{paint::Paint, strip::Strip};
    use castanet_element::kit::{Kit, packet};

    fn frame(src: [u8; 4]) -> Vec<u8> {
        let b = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(src, [2, 0, 0, 2], 64).udp(1, 2);
        let mut data = Vec::new();
        b.write(&mut data, b"abc").unwrap();
        data.extend([0; 9]);
        data
    }

    #[test]
    fn as_its_parts_one_after_the_other() {
        let good = frame([1, 0, 0, 1]);
        let mut all: Vec<Vec<u8>> = (0..=good.len()).map(|n| good[..n].to_vec()).collect();
        all.extend((0..good.len()).map(|i| {
            let mut d = good.clone();
            d[i] ^= 0x81;
            d
        }));
        all.extend([frame([1, 255, 255, 255]), frame([9, 9, 9, 9])]);
        let rules = "BADSRC 9.9.9.9, INTERFACES 1.0.0.9/8, GOODDST 2.0.0.3";
        let mut combo = Kit::<IpInputCombo>::new(&format!("7, {rules}")).unwrap();
        let mut paint = Kit::<Paint>::new("7").unwrap();
        let mut strip = Kit::<Strip>::new("14").unwrap();
        let mut check = Kit::<CheckIpHeader>::new(rules).unwrap();
        let mut passed = 0;
        for data in all {
            let one = combo.act([packet(&data)]);
            let painted = paint.act([packet(&data)]).into_iter().map(|o| o.1);
            let stripped: Vec<_> = strip.act(painted).into_iter().map(|o| o.1).collect();
            let other = check.act(stripped);
            assert_eq!(one.len(), other.len(), "{data:02x?}");
            for ((_, a), (_, b)) in one.iter().zip(&other) {
                passed += 1;
                assert_eq!((a.data(), a.annotations()), (b.data(), b.annotations()));
                assert_eq!(
                    (a.network_offset(), a.transport_offset()),
                    (b.network_offset(), b.transport_offset())
                );
            }
        }
        assert!(passed > 20);
        assert_eq!(combo.read("drops").unwrap(), check.read("drops").unwrap());
        for (config, other) in [
            ("7, 9.9.9.9, OFFSET 4", "BADSRC 9.9.9.9, OFFSET 4"),
            ("7, 4, CHECKSUM false, DETAILS true", "4, CHECKSUM false, DETAILS true"),
        ] {
            let mut combo = Kit::<IpInputCombo>::new(config).unwrap();
            let mut check = Kit::<CheckIpHeader>::new(other).unwrap();
            let mut data = frame([9, 9, 9, 9]);
            data.splice(14..14, [0; 4]);
            data[28] ^= 1;
            let passed = combo.act([packet(&data)]).len();
            assert_eq!(passed, check.act([packet(&data[14..])]).len(), "{config}");
            for handler in ["drops", "drop_details"] {
                assert_eq!(combo.read(handler).ok(), check.read(handler).ok(), "{config}");
            }
        }
        for bad in ["", "256", "1, x", "1, INTERFACES x", "1, 4, 5", "1, VERBOSE x"] {
            assert!(Kit::<IpInputCombo>::new(bad).is_err(), "{bad}");
        }
    }
}
