// SPDX-License-Identifier: MIT OR Apache-2.0
//! StoreEtherAddress: writes an Ethernet address into packets.

use super::address_offset::{AddressOffset, Anno6};
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;
use castanet_wire::ether::EtherAddr;

/// Writes an Ethernet address into packets.
///
/// The address is ADDR, or the value of the annotation ANNO. Packets that are too short for an address at OFFSET leave
/// unchanged on output 1, or are dropped if output 1 is not connected.
///
/// # Ports
/// Input 0: packets. Output 0: the packets with the address. Output 1 (optional): packets that are too short.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> StoreEtherAddress(02:00:00:00:00:01, src) -> StoreEtherAddress(02:00:00:00:00:02, OFFSET dst) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StoreEtherAddress", ports = "1/1-2", processing = "a/ah", packets = "any/same")]
#[class(workers = replicate, drops(TooShort), build, handlers, depends = packet)]
#[class(kernel)]
pub struct StoreEtherAddress {
    args: Args,
}

/// Arguments of StoreEtherAddress.
#[derive(Args)]
#[args(exactly_one(addr, anno))]
pub struct Args {
    /// The address to write; may be left out if ANNO is given.
    addr: Option<EtherAddr>,
    /// Where the address is written: bytes from the start of the packet, src or dst.
    offset: AddressOffset,
    /// The six-byte annotation that holds the address; used if ADDR is not given.
    #[arg(keyword)]
    anno: Option<Anno6>,
}

impl Build for StoreEtherAddress {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(StoreEtherAddress { args })
    }
}

#[handlers]
impl StoreEtherAddress {
    /// The address that is written; zeros if it comes from an annotation.
    #[read(merge = first)]
    fn addr(&self) -> EtherAddr {
        self.args.addr.unwrap_or(EtherAddr([0; 6]))
    }
    #[write]
    fn set_addr(&mut self, addr: EtherAddr) {
        self.args.addr = Some(addr);
        self.args.anno = None;
    }
}

impl Action for StoreEtherAddress {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if !self.args.offset.is_in(p.data()) {
            return cx.out_or(1, Reason::TooShort);
        }
        let address = match (self.args.addr, self.args.anno) {
            (Some(a), _) => a.0,
            (None, anno) => p.anno(anno.map_or(usize::MAX, |a| a.0)),
        };
        self.args.offset.put(p.data_mut(), address);
        Verdict::Next
    }
}

impl InKernel for StoreEtherAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let at = self.args.offset.in_kernel()?;
        let short = code.label();
        code.need_at(at, 6, short);
        match (self.args.addr, self.args.anno) {
            (Some(address), _) => code.store_bytes(at, &address.0),
            (None, Some(Anno6(from))) => {
                for (skip, size) in [(0, Size::Word), (4, Size::Half)] {
                    let part = code.annotation(from + skip, size);
                    code.store(at + skip as i32, size, part);
                }
            }
            // INVARIANT: the arguments have either.
            (None, None) => return Err("it has no address".into()),
        }
        code.next(0);
        code.bind(short);
        code.next_or(1, Reason::TooShort as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length_and_place() {
        for (place, at) in [("src", 6), ("dst", 0), ("12", 12), ("4294967295", usize::MAX)] {
            let config = format!("2:0:0:0:0:1, {place}");
            let mut two = Kit::<StoreEtherAddress>::with_ports(&config, 1, 2).unwrap();
            let mut one = Kit::<StoreEtherAddress>::with_ports(&config, 1, 1).unwrap();
            for len in 0..60u8 {
                let data: Vec<u8> = (100..100 + len).collect();
                let mut want = data.clone();
                let fits = at < 60 && usize::from(len) >= at + 6;
                if fits {
                    want[at..at + 6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
                }
                let out = two.act([packet(&data)]);
                assert_eq!((out[0].0, out[0].1.data()), (usize::from(!fits), &want[..]));
                assert_eq!(one.act([packet(&data)]).len(), usize::from(fits));
            }
            assert_eq!(one.dropped(Reason::TooShort), at.saturating_add(6).min(60) as u64);
        }
    }

    #[test]
    fn from_the_annotation() {
        let mut kit = Kit::<StoreEtherAddress>::new("OFFSET dst, ANNO 40").unwrap();
        assert_eq!(kit.read("addr").unwrap(), "00-00-00-00-00-00");
        let make = || {
            let mut p = packet(&[0; 12]);
            p.set_anno(40, [1, 2, 3, 4, 5, 6]);
            p
        };
        assert_eq!(kit.act([make()])[0].1.data()[..7], [1, 2, 3, 4, 5, 6, 0]);
        kit.write("addr", "9:9:9:9:9:9").unwrap();
        assert_eq!(kit.act([make()])[0].1.data()[..7], [9, 9, 9, 9, 9, 9, 0]);
        assert_eq!(kit.read("addr").unwrap(), "09-09-09-09-09-09");
        assert!(kit.write("addr", "9").is_err());
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("OFFSET 1", "ADDR or ANNO: required argument missing"),
            ("1:1:1:1:1:1, 0, ANNO 40", "specify at most one of ADDR and ANNO"),
            ("1:1:1:1:1:1", "OFFSET: required argument missing"),
            ("OFFSET 1, ANNO 43", "ANNO: annotation offset 43 leaves no room for 6 bytes of 48"),
        ] {
            assert_eq!(Kit::<StoreEtherAddress>::new(config).err().unwrap(), [error], "{config}");
        }
    }
}
