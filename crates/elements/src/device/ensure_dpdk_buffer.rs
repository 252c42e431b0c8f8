// SPDX-License-Identifier: MIT OR Apache-2.0
//! EnsureDPDKBuffer: passes packets unchanged.

use castanet_element::prelude::*;

/// Passes packets unchanged: there is no DPDK here, so all packets are in the buffers that devices use.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> EnsureDPDKBuffer(true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "EnsureDPDKBuffer", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(depends = packet)]
pub struct EnsureDpdkBuffer {
    args: Args,
}

/// Arguments of EnsureDPDKBuffer.
#[derive(Args)]
pub struct Args {
    /// Accepted and ignored: whether packets are copied in any case.
    #[arg(name = "FORCE_COPY", default = false)]
    _force_copy: bool,
    /// Accepted and ignored: bytes to keep free before the data.
    #[arg(name = "EXTRA_HEADROOM", default = 0)]
    _extra_headroom: u32,
    /// Accepted and ignored: whether a packet that cannot be copied is an error.
    #[arg(keyword, name = "FAIL", default = false)]
    _fail: bool,
}

impl Action for EnsureDpdkBuffer {
    #[inline]
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
    #[inline]
    fn action_batch(&mut self, _: &mut Batch, _: &mut Cx<'_>) {}
}
