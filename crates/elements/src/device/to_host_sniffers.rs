// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToHostSniffers: drops packets that are meant only for programs such as tcpdump.

use super::args::DeviceName;
use castanet_element::prelude::*;

/// Drops packets that a router inside the kernel would show to the sniffers of the host (tcpdump, for example).
///
/// In Castanet, sniffers see the packets of a device anyway, because the router receives and sends through packet
/// sockets. The class exists for configurations that also run inside the kernel.
///
/// # Ports
/// Input 0 (push): packets to drop.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> t :: Tee -> Discard;
/// t [1] -> ToHostSniffers(eth0);
/// ```
#[derive(Class)]
#[class(name = "ToHostSniffers", offload = aware, ports = "1/0", processing = "h/h", packets = "any/")]
#[class(workers = replicate, ends(Discarded), drops(Discarded))]
pub struct ToHostSniffers {
    args: Args,
}

/// Arguments of ToHostSniffers.
#[derive(Args)]
pub struct Args {
    /// Accepted for old configurations and ignored: the device whose sniffers are to see the packets.
    #[arg(name = "DEVNAME")]
    _device: Option<DeviceName>,
    /// Accepted for old configurations and ignored: the packet type that sniffers are to see.
    #[arg(keyword, name = "TYPE")]
    _kind: Option<Word>,
}

impl Element for ToHostSniffers {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.drop_all(batch, Reason::Discarded);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn drops_what_comes() {
        for config in ["", "eth0", "eth0, TYPE OUTGOING"] {
            let mut kit = Kit::<ToHostSniffers>::new(config).unwrap();
            for n in [1, 2, 32] {
                assert!(kit.push(0, (0..n).map(|_| packet(b"x"))).is_empty());
            }
            assert_eq!(kit.dropped(Reason::Discarded), 35);
        }
        assert!(Kit::<ToHostSniffers>::new("eth0, x").is_err());
    }
}
