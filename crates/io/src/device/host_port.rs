// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives frames back to the host's network stack, as if they had arrived at a device with METHOD XDP, which takes all frames from it.
//!
//! A TAP device gets the frames. A program at its ingress redirects them to the ingress of the device, so the host's network
//! stack sees them as frames of that device. Drivers run the XDP program of the device before its ingress, so it does not see them again; in generic
//! mode it would, and [`HostPort::check`] refuses that.

use super::bpf::{Operation, Program, XdpMode};
use super::error::DeviceError;
use super::facts::{self, Setup, set_up};
use super::tun::{Tun, TunOptions};
use super::xdp::mode_of;
use crate::opener;
use castanet_kernel::instruction::{code, helper};
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The action that errors name.
pub(crate) const GIVE_BACK: &str = "give frames back to the host";
/// The name of the TAP device.
const NAME: &str = "tohost%d";

/// The program: all frames go to the ingress of the device with this interface index.
fn program(device: u32) -> [Operation; 4] {
    /// The flag of the function: the ingress of the device, and not its egress.
    const INGRESS: i32 = 1;
    let set = code::ALU64 | code::MOV;
    [
        Operation::new(set, 1, 0, 0, device.cast_signed()),
        Operation::new(set, 2, 0, 0, INGRESS),
        Operation::new(code::CALL, 0, 0, 0, helper::REDIRECT),
        Operation::new(code::EXIT, 0, 0, 0, 0),
    ]
}

/// Makes the TAP device and attaches the program.
pub(crate) fn open(device: &str) -> Result<(Tun, OwnedFd), DeviceError> {
    let index = facts::index(device)?;
    let tun =
        Tun::open(&TunOptions { name: Some(NAME.into()), tap: true, queues: 1, ..TunOptions::default() })?;
    // Without IPv6, the host sends no router solicitations by the device. If it does, they are never read.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", tun.name()), "1");
    set_up(tun.name(), &Setup { up: Some(true), ..Setup::default() })?;
    let link = Program::attach_to_ingress(&program(index), tun.index()?);
    let link = link.map_err(|e| DeviceError::from_errno(device, GIVE_BACK, e))?;
    Ok((tun, link))
}

/// The program at the ingress of the TAP device.
#[derive(Debug)]
enum Redirect {
    /// The kernel detaches it when this is dropped.
    Own { _link: OwnedFd },
    /// The process that opens devices has it, under this number.
    Kept(String, u32),
}

impl Drop for Redirect {
    fn drop(&mut self) {
        if let Redirect::Kept(device, number) = self {
            // If the process that opens devices has ended, so has the program.
            let _ = opener::client().map(|o| o.forget(device, *number));
        }
    }
}

/// A way to give frames back to the host, as if a device had received them.
#[derive(Debug)]
pub struct HostPort {
    device: String,
    tun: Tun,
    _redirect: Redirect,
}

/// The ports of this process. The old and the new router of a hot swap share them.
static PORTS: Mutex<Vec<Weak<HostPort>>> = Mutex::new(Vec::new());

impl HostPort {
    /// The port of a device, which all elements of this process share.
    ///
    /// # Errors
    /// When the device is missing, the kernel has no TUN driver or is older than Linux 6.6, or does not permit it.
    pub fn of(device: &str) -> Result<Arc<HostPort>, DeviceError> {
        let mut ports = PORTS.lock();
        ports.retain(|p| p.strong_count() > 0);
        if let Some(port) = ports.iter().filter_map(Weak::upgrade).find(|p| p.device == device) {
            return Ok(port);
        }
        let (tun, redirect) = match opener::client() {
            Some(opener) => {
                let (number, tun) = opener.host_port(device)?;
                (tun, Redirect::Kept(device.to_owned(), number))
            }
            None => open(device).map(|(tun, link)| (tun, Redirect::Own { _link: link }))?,
        };
        let port = Arc::new(HostPort { device: device.to_owned(), tun, _redirect: redirect });
        ports.push(Arc::downgrade(&port));
        Ok(port)
    }
    /// The TAP device, to which the frames are sent.
    pub fn tun(&self) -> &Tun {
        &self.tun
    }
    /// Checks that the frames do not come back.
    ///
    /// # Errors
    /// No receiver is open for the device, or its XDP program runs in generic mode, and would get the frames again.
    pub fn check(&self) -> Result<(), DeviceError> {
        match mode_of(&self.device)? {
            Some(XdpMode::Driver) => Ok(()),
            Some(XdpMode::Generic) => Err(DeviceError::Unsupported {
                name: self.device.clone(),
                what: "giving frames back to the host, because its driver runs no XDP programs".into(),
            }),
            None => Err(DeviceError::Down { name: self.device.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_redirects_to_the_ingress() {
        let [device, flags, call, exit] = program(7);
        assert_eq!((device.immediate, flags.immediate), (7, 1));
        // The number of bpf_redirect in linux/bpf.h.
        assert_eq!((call.immediate, exit.code), (23, 0x95));
    }
}
