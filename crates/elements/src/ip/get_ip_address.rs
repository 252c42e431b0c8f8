// SPDX-License-Identifier: MIT OR Apache-2.0
//! GetIPAddress: copies an IPv4 address from the packet to an annotation.

use castanet_element::kernel::{Code, Lowered, Refused, Size};
use castanet_element::prelude::*;

/// Sets an annotation to an IPv4 address from the packet.
///
/// The address is at byte `OFFSET` of the packet (16 for the destination of a packet that starts with its IP header),
/// or it is the field `IP` of the marked network header. A packet that is too short is dropped, because it would keep
/// its old annotation and could be routed to a wrong address.
///
/// # Ports
/// Input 0, output 0: packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> GetIPAddress(16) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "GetIPAddress", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(drops(TooShort, NoIpHeader), build, depends = packet)]
#[class(kernel)]
pub struct GetIpAddress {
    args: Args,
    place: FieldToRead,
}

/// Arguments of GetIPAddress.
#[derive(Args)]
pub struct Args {
    /// Where the address is, in bytes from the start of the packet; needed unless IP is given.
    #[arg(default = -1)]
    offset: i32,
    /// The annotation to set, of four bytes.
    #[arg(default = Anno4(0), show = "DST_IP")]
    anno: Anno4,
    /// The field of the marked IP header that holds the address: src or dst.
    #[arg(keyword)]
    ip: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum FieldToRead {
    /// The address is at this offset in the packet data, and the annotation is the destination address annotation. This
    /// is the most common case.
    DataToDst(u32),
    Data(usize),
    Header(usize),
}

impl Build for GetIpAddress {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let place = match (usize::try_from(args.offset), args.ip.as_deref().map(str::trim)) {
            (Ok(_), None) if args.anno.0 == 0 => FieldToRead::DataToDst(args.offset.unsigned_abs()),
            (Ok(at), None) => FieldToRead::Data(at),
            (Err(_), Some("src" | "ip src")) => FieldToRead::Header(12),
            (Err(_), Some("dst" | "ip dst")) => FieldToRead::Header(16),
            (Err(_), Some(_)) => return Err("IP: expected 'src' or 'dst'".into()),
            (Err(_), None) => return Err("OFFSET: required argument missing".into()),
            (Ok(_), Some(_)) => return Err("specify at most one of OFFSET and IP".into()),
        };
        Ok(GetIpAddress { args, place })
    }
}

impl Action for GetIpAddress {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let (bytes, at) = match self.place {
            FieldToRead::DataToDst(at) => {
                let at = at as usize;
                let Some(&address) = p.data().get(at..at + 4).and_then(|b| b.first_chunk()) else {
                    return Verdict::Drop(Reason::TooShort);
                };
                p.set_dst_ip(u32::from_be_bytes(address));
                return Verdict::Next;
            }
            FieldToRead::Data(at) => (p.data(), at),
            FieldToRead::Header(at) => match p.network() {
                Some(n) => (n, at),
                None => return Verdict::Drop(Reason::NoIpHeader),
            },
        };
        let Some(&address) = bytes.get(at..).and_then(|b| b.first_chunk::<4>()) else {
            return Verdict::Drop(Reason::TooShort);
        };
        p.set_anno(self.args.anno.0, address);
        Verdict::Next
    }
}

impl InKernel for GetIpAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let too_far = || Refused("OFFSET is too large".into());
        let at = match self.place {
            FieldToRead::DataToDst(at) => i32::try_from(at).map_err(|_| too_far())?,
            FieldToRead::Data(at) => i32::try_from(at).map_err(|_| too_far())?,
            FieldToRead::Header(at) => match code.network() {
                Some((header, _)) => header + at as i32,
                None => {
                    code.drop(Reason::NoIpHeader as u16);
                    return Ok(());
                }
            },
        };
        let short = code.label();
        code.need_at(at, 4, short);
        let address = code.load(at, Size::Word);
        code.set_annotation(self.args.anno.0, Size::Word, address);
        code.next(0);
        code.bind(short);
        code.drop(Reason::TooShort as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        for len in 0..60u8 {
            let data: Vec<u8> = (0..len).collect();
            let mut kit = Kit::<GetIpAddress>::new("16").unwrap();
            let out = kit.act([packet(&data)]);
            if len < 20 {
                assert!(out.is_empty());
                assert_eq!(kit.dropped(Reason::TooShort), 1);
            } else {
                assert_eq!(out[0].1.dst_ip(), 0x10111213);
                assert_eq!(out[0].1.data(), &data[..]);
            }
        }
    }

    #[test]
    fn fields_and_annotations() {
        let data: Vec<u8> = (0..40).collect();
        for (config, anno, want) in [
            ("IP src", 0, [22, 23, 24, 25]),
            ("IP ip dst", 0, [26, 27, 28, 29]),
            ("4, MISC_IP", 20, [4, 5, 6, 7]),
            ("OFFSET 36, ANNO 44", 44, [36, 37, 38, 39]),
        ] {
            let mut kit = Kit::<GetIpAddress>::new(config).unwrap();
            let mut p = packet(&data);
            p.set_network_header(10, 20);
            assert_eq!(kit.act([p])[0].1.anno::<4>(anno), want, "{config}");
        }
        let mut kit = Kit::<GetIpAddress>::new("IP dst").unwrap();
        assert!(kit.act([packet(&data)]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("", "OFFSET: required argument missing"),
            ("IP tos", "IP: expected 'src' or 'dst'"),
            ("16, IP dst", "specify at most one of OFFSET and IP"),
        ] {
            assert_eq!(Kit::<GetIpAddress>::new(config).err().unwrap(), [error]);
        }
        assert!(Kit::<GetIpAddress>::new("16, 45").is_err());
    }
}
