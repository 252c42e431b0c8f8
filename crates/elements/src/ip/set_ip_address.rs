// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetIPAddress: sets an annotation to an IPv4 address.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;

/// Sets an annotation, by default the destination address, to an IPv4 address.
///
/// # Ports
/// Input 0, output 0: packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(10.0.0.1) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetIPAddress", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, depends = packet)]
#[class(kernel)]
pub struct SetIpAddress {
    args: Args,
}

/// Arguments of SetIPAddress.
#[derive(Args)]
pub struct Args {
    /// The address to set the annotation to.
    #[arg(handler = "rw", handler_name = "addr")]
    ipaddr: Ipv4Addr,
    /// The annotation to set, of four bytes.
    #[arg(keyword, default = Anno4(0), show = "DST_IP")]
    anno: Anno4,
}

impl Action for SetIpAddress {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno(self.args.anno.0, self.args.ipaddr.octets());
        Verdict::Next
    }
}

impl InKernel for SetIpAddress {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.set_known_annotation(self.args.anno.0, self.args.ipaddr.octets());
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
    fn sets_the_annotation() {
        let mut kit = Kit::<SetIpAddress>::new("10.0.0.1").unwrap();
        assert_eq!(kit.act([packet(&[])])[0].1.dst_ip(), 0x0a000001);
        kit.write("addr", "10.0.0.2").unwrap();
        assert_eq!(kit.read("addr").unwrap(), "10.0.0.2");
        assert_eq!(kit.act([packet(&[1])])[0].1.dst_ip(), 0x0a000002);
        assert!(kit.write("addr", "10").is_err());
        let mut kit = Kit::<SetIpAddress>::new("1.2.3.4, ANNO 40").unwrap();
        assert_eq!(kit.act([packet(&[1])])[0].1.anno::<4>(40), [1, 2, 3, 4]);
        assert!(Kit::<SetIpAddress>::new("").is_err());
    }
}
