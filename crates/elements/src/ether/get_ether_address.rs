// SPDX-License-Identifier: MIT OR Apache-2.0
//! GetEtherAddress: copies an Ethernet address from packets to an annotation.

use super::address_offset::{AddressOffset, Anno6};
use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;

/// Copies an Ethernet address from packets into an annotation of six bytes.
///
/// Packets too short for an address at OFFSET leave unchanged on output 1, or are dropped if output 1 is not connected.
///
/// # Ports
/// Input 0: packets. Output 0: the packets with the annotation. Output 1 (optional): packets that are too short.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<020000000002 020000000001 0800>, LIMIT 5, STOP true)
///     -> GetEtherAddress(40, src) -> StoreEtherAddress(OFFSET dst, ANNO 40) -> Print(back) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "GetEtherAddress", ports = "1/1-2", processing = "a/ah", packets = "any/same")]
#[class(reconfigure = keeps, workers = replicate, drops(TooShort), depends = packet)]
#[class(kernel)]
pub struct GetEtherAddress {
    args: Args,
}

/// Arguments of GetEtherAddress.
#[derive(Args)]
pub struct Args {
    /// The annotation to set, of six bytes.
    anno: Anno6,
    /// Where the address is: an offset in bytes from the start of the packet, or src or dst.
    offset: AddressOffset,
}

impl Action for GetEtherAddress {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(address) = self.args.offset.get(p.data()) else { return cx.out_or(1, Reason::TooShort) };
        p.set_anno(self.args.anno.0, address);
        Verdict::Next
    }
}

impl InKernel for GetEtherAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let at = self.args.offset.in_kernel()?;
        let short = code.label();
        code.need_at(at, 6, short);
        for (skip, size) in [(0, Size::Word), (4, Size::Half)] {
            let part = code.load(at + skip as i32, size);
            code.set_annotation(self.args.anno.0 + skip, size, part);
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
        for (place, at) in [("src", 6), ("dst", 0), ("12", 12)] {
            let config = format!("42, {place}");
            let mut two = Kit::<GetEtherAddress>::with_ports(&config, 1, 2).unwrap();
            let mut one = Kit::<GetEtherAddress>::new(&config).unwrap();
            for len in 0..60usize {
                let data: Vec<u8> = (0..len).map(|i| i as u8 + 100).collect();
                let out = two.act([packet(&data)]);
                let fits = len >= at + 6;
                let want: [u8; 6] = std::array::from_fn(|i| if fits { (at + i) as u8 + 100 } else { 0 });
                assert_eq!((out[0].0, out[0].1.anno::<6>(42)), (usize::from(!fits), want));
                assert_eq!(one.act([packet(&data)]).len(), usize::from(fits));
            }
            assert_eq!(one.dropped(Reason::TooShort), at as u64 + 6);
        }
        for config in ["43, src", "PAINT, src", "40", "40, middle"] {
            assert!(Kit::<GetEtherAddress>::new(config).is_err(), "{config}");
        }
    }
}
