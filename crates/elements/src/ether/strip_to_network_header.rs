// SPDX-License-Identifier: MIT OR Apache-2.0
//! StripToNetworkHeader: strips everything before the network header.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Strips everything before the network header.
///
/// If the network header itself has been stripped, it is restored. Packets without a network header pass unchanged.
///
/// # Ports
/// Input 0: packets. Output 0: packets that start with their network header.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader(14) -> StripToNetworkHeader -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StripToNetworkHeader", ports = "1/1", processing = "a/a", packets = "any/to network")]
#[class(workers = replicate, drops(TooLong), depends = packet)]
#[class(kernel)]
pub struct StripToNetworkHeader {}

impl Action for StripToNetworkHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let offset = p.network_offset().unwrap_or(0);
        // The network header starts inside the packet or before it. Only restoring bytes before the packet can fail.
        let done =
            if offset >= 0 { p.strip(offset.unsigned_abs()) } else { p.unstrip(offset.unsigned_abs()) };
        if !done {
            return Verdict::Drop(Reason::TooLong);
        }
        Verdict::Next
    }
}

impl InKernel for StripToNetworkHeader {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Some((offset, _)) = code.network() else {
            code.next(0);
            return Ok(());
        };
        let short = code.label();
        if offset >= 0 {
            code.need(offset.unsigned_abs(), short);
            code.strip(offset.unsigned_abs());
        } else {
            code.unstrip(offset.unsigned_abs());
        }
        code.next(0);
        code.bind(short);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn strips_and_puts_back() {
        let data: Vec<u8> = (0..60).collect();
        let mut kit = Kit::<StripToNetworkHeader>::new("").unwrap();
        for (at, stripped) in [(0, 0), (14, 0), (14, 14), (14, 34), (60, 0), (0, 60)] {
            let mut p = packet(&data);
            p.set_network_header(at, 20);
            p.strip(stripped);
            let out = kit.act([p]);
            assert_eq!((out[0].1.data(), out[0].1.network_offset()), (&data[at..], Some(0)));
        }
        assert_eq!(kit.act([packet(&data)])[0].1.data(), data);
    }
}
