// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToHost: sends frames to the host.

use super::args::DeviceName;
use super::from_host::{HostDevice, HostDevices};
use super::tap::write;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_io::device::{Start, Tun};
use std::sync::Arc;

/// Sends Ethernet frames to the host, through the device that a FromHost element with the same device name creates.
///
/// # Ports
/// Input 0 (push): Ethernet frames.
///
/// # Example
/// ```click
/// FromHost(fake1, 10.80.0.1/24) -> Discard;
/// InfiniteSource(LENGTH 60, LIMIT 10) -> EtherEncap(0x88b5, 2:2:2:2:2:2, ff:ff:ff:ff:ff:ff) -> ToHost(fake1);
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(ends(Consumed))]
#[class(name = "ToHost", aliases("ToLinux"), ports = "1/0", processing = "h/h", packets = "ether/")]
#[class(workers = replicate, build, lifecycle, handlers, effects(prints), offload = aware)]
#[class(drops(Consumed, TooShort, TooLong, QueueFull, SendFailed))]
#[class(kernel)]
pub struct ToHost {
    args: Args,
    device: Arc<HostDevice>,
    tun: Option<Arc<Tun>>,
    /// Frames that the host did not take.
    #[count(unit = "packets")]
    drops: Count,
}

/// Arguments of ToHost.
#[derive(Args)]
pub struct Args {
    /// The device that FromHost creates.
    devname: DeviceName,
}

impl Build for ToHost {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let device = HostDevices::get(&args.devname.0, cx);
        Ok(ToHost { args, device, tun: None, drops: Count::default() })
    }
}

impl Element for ToHost {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        // FromHost may be initialised after this element, so get the device here, when packets come and it is open.
        if self.tun.is_none() {
            self.tun = self.device.get();
        }
        for p in batch.drain() {
            let sent = self.tun.as_ref().map_or(Err(Reason::SendFailed), |t| write(t, Start::Ethernet, &p));
            match sent {
                Ok(()) => cx.drop(p, Reason::Consumed),
                Err(reason) => {
                    if self.drops.get() == 0 {
                        let name = &self.args.devname.0;
                        cx.message(&format!(
                            "{}: {name}: the host does not take a frame: {reason}",
                            cx.declaration()
                        ));
                    }
                    self.drops.add(1);
                    cx.drop(p, reason);
                }
            }
        }
    }
}

#[handlers]
impl ToHost {
    /// The name of the device.
    #[read(merge = first)]
    fn dev_name(&self) -> &str {
        &self.args.devname.0
    }
}

impl Lifecycle for ToHost {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.device.check(&self.args.devname.0).map(|_| ())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.tun = None;
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

impl InKernel for ToHost {
    fn lower(&self, _: u32, _: &mut Code<'_>) -> Lowered {
        Err("the host gets its frames from another device than the one that received them".into())
    }
}
