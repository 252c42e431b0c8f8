// SPDX-License-Identifier: MIT OR Apache-2.0
//! Argument types for fields of the IPv4 header: the protocol and the ECN bits.

use castanet_classify::names;
use castanet_element::kernel::{Code, Size, Value};
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;

/// An IP protocol, given by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpProto(pub u8);

impl ArgValue for IpProto {
    const TYPE: &'static str = "ip-proto";
    const WORD: bool = true;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<IpProto, ValueError> {
        let number = names::ip_proto_number(text).map_or_else(|| u8::parse(text, cx), Ok);
        Ok(IpProto(number.map_err(|_| format!("'{text}' is not an IP protocol"))?))
    }
}

impl Show for IpProto {
    fn show(&self) -> String {
        names::ip_proto_name(self.0).map_or_else(|| self.0.to_string(), Into::into)
    }
}

/// The two ECN bits (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecn(pub u8);

/// The names of each value of the ECN bits. The first name of a value is the one that is printed.
const ECN: [&[&str]; 4] =
    [&["no", "0", "Not-ECT"], &["ect1", "1", "ECT(1)"], &["ect2", "2", "ECT(0)"], &["ce", "3", "CE"]];

impl ArgValue for Ecn {
    const TYPE: &'static str = "ecn";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Ecn, ValueError> {
        let found = (0u8..).zip(ECN).find(|(_, names)| names.contains(&text));
        found.map(|(bits, _)| Ecn(bits)).ok_or_else(|| "expected 'no', 'ect1', 'ect2' or 'ce'".into())
    }
}

impl Show for Ecn {
    fn show(&self) -> String {
        ECN.get(usize::from(self.0)).and_then(|n| n.first()).copied().unwrap_or_default().to_string()
    }
}

/// Describes [`Ipv4Header::rewrite_tos`] for the marked header: `compute` returns the new type of service. Packets without a whole
/// header are dropped.
pub fn lower_tos(code: &mut Code<'_>, compute: impl FnOnce(&mut Code<'_>, Value) -> Value) {
    let Some((at, _)) = code.network() else { return code.drop(Reason::NoIpHeader as u16) };
    let short = code.label();
    code.need_at(at, Ipv4Header::LEN as u32, short);
    let tos = code.load(at + 1, Size::Byte);
    let tos = compute(code, tos);
    let old = code.load(at, Size::Half);
    code.store(at + 1, Size::Byte, tos);
    let new = code.load(at, Size::Half);
    code.update_checksum(at + 10, Size::Half, old, new);
    code.next(0);
    code.bind(short);
    code.drop(Reason::NoIpHeader as u16);
}
