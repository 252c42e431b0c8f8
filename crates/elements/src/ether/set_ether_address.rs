// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetEtherAddress: sets an annotation to an Ethernet address.

use super::address_offset::Anno6;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_wire::ether::EtherAddr;

/// Sets an annotation of six bytes to an Ethernet address.
///
/// # Ports
/// Input 0: packets. Output 0: the packets with the annotation.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> SetEtherAddress(02:00:00:00:00:01, 40) -> StoreEtherAddress(OFFSET src, ANNO 40) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetEtherAddress", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, depends = packet)]
#[class(kernel)]
pub struct SetEtherAddress {
    args: Args,
}

/// Arguments of SetEtherAddress.
#[derive(Args)]
pub struct Args {
    /// The address that the annotation is set to.
    #[arg(handler = "rw")]
    addr: EtherAddr,
    /// The annotation to set, of six bytes.
    anno: Anno6,
}

impl Action for SetEtherAddress {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno(self.args.anno.0, self.args.addr.0);
        Verdict::Next
    }
}

impl InKernel for SetEtherAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.set_known_annotation(self.args.anno.0, self.args.addr.0);
        code.next(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn annotates() {
        for at in [0, 20, 42] {
            let mut kit = Kit::<SetEtherAddress>::new(&format!("1:2:3:4:5:6, {at}")).unwrap();
            let p = kit.act1(packet(b"")).1;
            let mut want = [0; 48];
            want[at..at + 6].copy_from_slice(&[1, 2, 3, 4, 5, 6]);
            assert_eq!(p.annotations(), want);
            kit.write("addr", "9:9:9:9:9:9").unwrap();
            assert_eq!(kit.read("addr").unwrap(), "09-09-09-09-09-09");
            assert_eq!(kit.act1(packet(b"")).1.anno(at), [9; 6]);
        }
        for config in ["1:2:3:4:5:6, 43", "1:2:3:4:5:6", "1:2:3:4:5:6, DST_IP"] {
            assert!(Kit::<SetEtherAddress>::new(config).is_err(), "{config}");
        }
    }
}
