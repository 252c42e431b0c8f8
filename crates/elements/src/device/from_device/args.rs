// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of FromDevice.

use crate::device::args::{DeviceName, Encap, Method};
use castanet_element::prelude::*;
use castanet_io::device::xdp;

/// Arguments of FromDevice.
#[derive(Args)]
pub struct Args {
    /// The name of the device.
    pub(super) devname: DeviceName,
    /// Whether frames to other hosts are received.
    #[arg(default = false)]
    pub(super) promisc: bool,
    /// The maximum length of a packet in bytes, 14 to 65535; further bytes are cut off and counted in the extra
    /// length annotation. By default packets are whole.
    #[arg(min = 14, max = 65_535)]
    pub(super) snaplen: Option<u32>,
    /// Whether the host's own network stack also sees the frames.
    #[arg(keyword, default = true)]
    pub(super) sniffer: bool,
    /// Whether to emit only IPv4 packets, with their network header marked.
    #[arg(keyword, default = false)]
    pub(super) force_ip: bool,
    /// XDP: frames come around the host's network stack. PACKET, LINUX or PCAP: they come through a packet socket, as by
    /// default.
    #[arg(keyword, alias = "CAPTURE")]
    pub(super) method: Option<Method>,
    /// An expression of tcpdump; only frames that match it are received.
    #[arg(keyword)]
    pub(super) bpf_filter: Option<String>,
    /// The Ethernet type of the frames that are received; 0 for all frames.
    #[arg(keyword, default = 0)]
    pub(super) protocol: u16,
    /// Whether frames that the host sends are also received.
    #[arg(keyword, default = false)]
    pub(super) outbound: bool,
    /// Bytes before the data of each packet; by default about 28, so that the IP header is aligned. With METHOD XDP, there
    /// are always 286.
    #[arg(keyword, max = castanet_packet::MAX_HEADROOM)]
    pub(super) headroom: Option<u32>,
    /// The link type that the device must have; any other is an error.
    #[arg(keyword)]
    pub(super) encap: Option<Encap>,
    /// Accepted for old configurations and ignored; frames that are ready are emitted together, up to 64 of them.
    #[arg(keyword, name = "BURST", default = 1, min = 1)]
    _burst: u32,
    /// The number of the group of elements that share the frames of the device. A group may span several routers
    /// of a network namespace, except with METHOD XDP.
    #[arg(keyword)]
    pub(super) fanout: Option<u16>,
    /// With METHOD XDP: whether the router polls the device whenever it looks for frames, instead of waiting for
    /// interrupts of the device (Linux 5.11). Frames arrive earlier, at a higher load.
    #[arg(keyword, default = false)]
    pub(super) busy_poll: bool,
    /// Whether packets get the time of reception as timestamp.
    #[arg(keyword, default = true)]
    pub(super) timestamp: bool,
}

impl Args {
    /// The arguments of FromDevice that receive from a device as DPDK does: the host gets no frames.
    pub(in crate::device) fn of_port(
        device: &str,
        xdp: bool,
        promisc: bool,
        fanout: Option<u16>,
        timestamp: bool,
    ) -> Args {
        Args {
            devname: DeviceName(device.to_string()),
            promisc,
            snaplen: None,
            sniffer: false,
            force_ip: false,
            method: xdp.then(|| Method("XDP".into())),
            bpf_filter: None,
            protocol: 0,
            outbound: false,
            headroom: None,
            encap: None,
            _burst: 1,
            fanout,
            busy_poll: false,
            timestamp,
        }
    }

    /// Whether frames come by XDP.
    pub(super) fn is_xdp(&self) -> bool {
        Method::is_xdp(self.method.as_ref())
    }

    /// Checks that all arguments fit METHOD.
    pub(super) fn check_method(&self) -> Result<(), ConfigError> {
        let refused = |what: &str, help: &str| {
            let error = ArgError::new(format!("{what} does not go with METHOD XDP"), 0..usize::MAX);
            Err(error.help(help.to_string()).into())
        };
        if !self.is_xdp() {
            let error = ArgError::new("BUSY_POLL needs METHOD XDP", 0..usize::MAX);
            return if self.busy_poll { Err(error.into()) } else { Ok(()) };
        }
        let takes_all = "all frames are taken from the host; choose among them by IPClassifier or Classifier";
        if self.bpf_filter.as_deref().is_some_and(|f| !f.trim().is_empty()) {
            return refused("BPF_FILTER", takes_all);
        }
        if self.protocol != 0 {
            return refused("PROTOCOL", takes_all);
        }
        if self.outbound {
            return refused("OUTBOUND", "XDP sees only frames that the device receives");
        }
        if self.headroom.is_some_and(|n| n as usize > xdp::HEADROOM) {
            return refused("such a HEADROOM", "packets have 286 bytes before their data");
        }
        Ok(())
    }
}
