// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the host's own network stack from seeing what a device receives, so that it does not answer too.

use super::error::DeviceError;
use super::facts;
use super::netlink::{self as nl, Message, Netlink};
use rustix::io::Errno;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
const TCA_BPF_FLAGS: u16 = 8;
/// What the program gives is what becomes of the frame.
const DIRECT: u32 = 1;
/// `ret 2`: TC_ACT_SHOT, for every frame.
const DROP_ALL: [u8; 8] = {
    let code = 6u16.to_ne_bytes();
    let k = 2u32.to_ne_bytes();
    [code[0], code[1], 0, 0, k[0], k[1], k[2], k[3]]
};
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
/// Early among filters: whatever they would do, the host is not to see the frame.
const PRIORITY: u32 = 1;
const ETH_P_ALL: u16 = 3;

/// While it lives the host drops all that a device receives, behind packet sockets, which see it as before. It is a filter
/// at the ingress of the device; when a program is killed the filter stays until `tc qdisc del dev NAME clsact`.
#[derive(Debug)]
pub struct Shield {
    name: String,
    index: u32,
    handle: u32,
    /// Whether the place for filters was made for this one.
    made: bool,
}

fn message(kind: u16, flags: u16, index: u32, handle: u32, parent: u32, info: u32) -> Message {
    let mut head = [0; 20];
    for (at, value) in [(4, index), (8, handle), (12, parent), (16, info)] {
        if let Some(word) = head.get_mut(at..at + 4) {
            word.copy_from_slice(&value.to_ne_bytes());
        }
    }
    Message::new(kind, flags, &head)
}

impl Shield {
    fn info() -> u32 {
        PRIORITY << 16 | u32::from(ETH_P_ALL.to_be())
    }
    /// Shields the host from a device.
    ///
    /// # Errors
    /// When the device is missing, the system does not permit it or has no such filters.
    pub fn raise(name: &str) -> Result<Shield, DeviceError> {
        let index = facts::index(name)?;
        let n = Netlink::open().map_err(|e| DeviceError::from_errno(name, "filter for the host", e))?;
        let failed = |e| {
            match e {
            Errno::OPNOTSUPP | Errno::NOENT | Errno::INVAL => DeviceError::Unsupported {
                name: name.to_owned(),
                what: "filters at the ingress of devices (sch_ingress and cls_bpf are not in this kernel); give the \
                       device no addresses of the host instead, and switch forwarding off"
                    .into(),
            },
            e => DeviceError::from_errno(name, "filter for the host", e),
        }
        };
        let place = message(nl::RTM_NEWQDISC, nl::CREATE | nl::EXCL, index, CLSACT_HANDLE, CLSACT, 0);
        let made = match n.request(place.attribute(TCA_KIND, b"clsact\0")) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(failed(e)),
        };
        // Other elements and programs may have their filters there too: the first handle that is free.
        let first = std::process::id().wrapping_shl(8) | 1;
        for handle in first..=first | 0xff {
            let m =
                message(nl::RTM_NEWTFILTER, nl::CREATE | nl::EXCL, index, handle, INGRESS, Shield::info())
                    .attribute(TCA_KIND, b"bpf\0")
                    .nested(TCA_OPTIONS, |m| {
                        m.attribute(TCA_BPF_OPS_LEN, &1u16.to_ne_bytes())
                            .attribute(TCA_BPF_OPS, &DROP_ALL)
                            .attribute(TCA_BPF_FLAGS, &DIRECT.to_ne_bytes())
                    });
            match n.request(m) {
                Ok(()) => return Ok(Shield { name: name.to_owned(), index, handle, made }),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(DeviceError::Busy { name: name.to_owned() })
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether the device is still the one that was shielded: one that was removed and made again is not.
    pub fn is_up_to_date(&self) -> bool {
        facts::index(&self.name) == Ok(self.index)
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        let Ok(n) = Netlink::open() else { return };
        let filter = message(nl::RTM_DELTFILTER, 0, self.index, self.handle, INGRESS, Shield::info());
        // A device that is gone has no filters either, so there is nobody to tell an error.
        let _ = n.request(filter.attribute(TCA_KIND, b"bpf\0"));
        if !self.made {
            return;
        }
        let mut others = false;
        let list = message(nl::RTM_GETTFILTER, 0, self.index, 0, INGRESS, 0);
        let _ = n.dump(list, |kind, _| others |= kind == nl::RTM_NEWTFILTER);
        if !others {
            let place = message(nl::RTM_DELQDISC, 0, self.index, CLSACT_HANDLE, CLSACT, 0);
            let _ = n.request(place);
        }
    }
}
