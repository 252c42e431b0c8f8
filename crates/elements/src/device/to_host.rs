// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToHost: sends frames to the host.

use super::args::DeviceName;
use super::from_host::{HostDevice, HostDevices};
use super::tap::write;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_io::device::{HostPort, Start, Tun};
use std::sync::Arc;

/// Sends Ethernet frames to the host, through the device that a FromHost element with the same device name creates.
///
/// Without such a FromHost, ToHost gives back frames to an existing device whose frames `FromDevice(DEVNAME, METHOD XDP)`
/// takes from the host: the host sees them as received by that device. With the driver xdp, frames that reach ToHost in the kernel and were received by
/// the same device stay there. Otherwise this needs Linux 6.6 and a driver that runs XDP programs.
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
    /// Where frames go, once it is known.
    to: Option<To>,
    /// The way to an existing device, from the initialisation on.
    port: Option<Arc<HostPort>>,
    /// Frames that the host did not take.
    #[count(unit = "packets")]
    drops: Count,
}

/// The host's side.
enum To {
    /// The device that FromHost has made.
    Made(Arc<Tun>),
    /// An existing device.
    Device(Arc<HostPort>),
}

impl To {
    fn tun(&self) -> &Tun {
        match self {
            To::Made(tun) => tun,
            To::Device(port) => port.tun(),
        }
    }
}

/// Arguments of ToHost.
#[derive(Args)]
pub struct Args {
    /// The device that FromHost creates, or from which METHOD XDP takes the frames.
    devname: DeviceName,
}

impl Build for ToHost {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let device = HostDevices::get(&args.devname.0, cx);
        Ok(ToHost { args, device, to: None, port: None, drops: Count::default() })
    }
}

impl Element for ToHost {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut why = None;
        if self.to.is_none() {
            why = self.find().err();
        }
        for p in batch.drain() {
            let sent =
                self.to.as_ref().map_or(Err(Reason::SendFailed), |to| write(to.tun(), Start::Ethernet, &p));
            match sent {
                Ok(()) => cx.drop(p, Reason::Consumed),
                Err(reason) => {
                    if self.drops.get() == 0 {
                        let name = &self.args.devname.0;
                        let why = why.take().unwrap_or_else(|| format!("{name}: {reason}"));
                        cx.message(&format!("{}: the host does not take a frame: {why}", cx.declaration()));
                    }
                    self.drops.add(1);
                    cx.drop(p, reason);
                }
            }
        }
    }
}

impl ToHost {
    /// Finds where frames go. FromHost and FromDevice may be initialised after this element, so this happens when packets come.
    #[cold]
    fn find(&mut self) -> Result<(), String> {
        self.to = match &self.port {
            Some(port) => {
                port.check().map_err(|e| e.to_string())?;
                Some(To::Device(port.clone()))
            }
            None => self.device.get().map(To::Made),
        };
        Ok(())
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
        let name = &self.args.devname.0;
        if self.device.gives_back() {
            self.port = Some(HostPort::of(name).map_err(ElementError::refused)?);
            return Ok(());
        }
        self.device.check(name).map(|_| ())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.to, self.port) = (None, None);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

impl InKernel for ToHost {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if !self.device.gives_back() || code.received_by() != self.args.devname.0 {
            return Err("the host gets its frames from another device than the one that received them".into());
        }
        // The host takes no frames without an Ethernet header.
        let short = code.label();
        code.need(14, short);
        code.host(Reason::Consumed as u16);
        code.bind(short);
        code.up();
        Ok(())
    }
}
