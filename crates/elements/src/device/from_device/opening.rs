// SPDX-License-Identifier: MIT OR Apache-2.0
//! How FromDevice opens its device.

use super::FromDevice;
use super::filter;
use super::group::claimed;
use super::source::Source;
use crate::device::intake::{Intake, default_headroom};
use crate::device::xdp::Users;
use castanet_element::prelude::*;
use castanet_io::device::xdp::{Share, XdpOptions, XdpReceiver};
use castanet_io::device::{self, PacketSocket, Shield};

impl FromDevice {
    /// Whether the host's network stack must be kept from seeing the frames by a filter.
    pub(super) fn needs_shield(&self) -> bool {
        !self.args.sniffer && !self.args.is_xdp()
    }

    /// Opens the device.
    pub(super) fn open(&mut self, arguments: ArgCx<'_>) -> Result<Source, ElementError> {
        let name = &self.args.devname.0;
        let info = device::link_info(name).map_err(ElementError::refused)?;
        if let Some(wanted) = self.args.encap.filter(|e| e.0 != info.link) {
            return Err(format!("{name}: its link type is {}, not {}", info.link, wanted.0).into());
        }
        let source = match &self.users {
            Some(users) => Source::Xdp(Box::new(self.open_by_xdp(users)?)),
            None => {
                let filter = self.args.bpf_filter.as_deref().map(str::trim).filter(|f| !f.is_empty());
                let compiled = filter.map(|f| filter::compile(f, info.link, arguments)).transpose();
                self.options.filter = compiled
                    .map_err(|e| e.0.into_iter().map(|e| e.message).collect::<Vec<_>>().join("; "))?;
                Source::Packet(PacketSocket::open(name, &self.options).map_err(ElementError::refused)?)
            }
        };
        if self.needs_shield() && self.shield.as_ref().is_none_or(|s| !s.is_up_to_date()) {
            self.shield = Some(Shield::raise(name).map_err(ElementError::refused)?);
        }
        (self.link, self.ether) = (info.link, self.ether.or(info.ether));
        let headroom = self.args.headroom.map_or(default_headroom(info.link), |n| n as usize);
        self.intake = Intake::new(headroom, info.link);
        Ok(source)
    }

    fn open_by_xdp(&self, users: &Users) -> Result<XdpReceiver, ElementError> {
        let members = self.members.count(&claimed(&self.args, ""));
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let options = XdpOptions {
            promiscuous: self.args.promisc,
            share: Share { member: narrow(self.member), members: narrow(members) },
            buffers: users.buffers(),
            busy_poll: self.args.busy_poll,
        };
        XdpReceiver::open(&self.args.devname.0, &options).map_err(ElementError::refused)
    }
}
