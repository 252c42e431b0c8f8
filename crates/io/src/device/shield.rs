// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hides the received frames of a device from the host's own network stack. Without this, both the router and the
//! host would answer them.

use super::bpf::{Operation, Program};
use super::error::DeviceError;
use super::facts;
use super::netlink::Netlink;
use super::owner::{Fate, Owner};
use super::tc::{self, Filter};
use crate::opener;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// `return TCX_DROP`, for every frame.
const DROP_ALL: [Operation; 2] = [
    Operation { code: 0xb7, registers: 0, offset: 0, immediate: 2 },
    Operation { code: 0x95, registers: 0, offset: 0, immediate: 0 },
];

/// The filter in the kernel that hides the frames of a device from the host.
#[derive(Debug)]
enum Means {
    /// A TCX link: the kernel removes the program when the descriptor is closed, even if the process is
    /// killed.
    Link { fd: OwnedFd },
    /// A cls_bpf filter, which stays until it is removed. Used for kernels before 6.6 and in user namespaces. `made` is
    /// true if the clsact qdisc was created for this filter.
    Filter { handle: u32, made: bool },
    /// A filter owned by the process that opens devices. That process removes the filter when this process
    /// ends.
    Kept { number: u32 },
    /// The descriptor of the TCX link was taken out by [`Shield::into_link`], so dropping the shield removes nothing.
    Gone,
}

/// While a shield exists, the host drops all frames that a device receives. Packet sockets get the frames
/// before they are dropped.
///
/// If TCX links are available (Linux 6.6, in the initial user namespace), the kernel removes the filter when
/// the process ends, even if the process is killed. Otherwise a cls_bpf filter is used, which is marked with
/// its owner. If the owner is killed, the filter stays until another process shields the device or calls
/// [`remove`].
#[derive(Debug)]
pub struct Shield {
    name: String,
    index: u32,
    means: Means,
}

impl Shield {
    /// Hides the frames of a device from the host.
    ///
    /// # Errors
    /// When the device is missing, or the kernel does not permit or support such filters.
    pub fn raise(name: &str) -> Result<Shield, DeviceError> {
        let Some(opener) = opener::client() else { return Shield::raise_for(name, &Owner::this()) };
        let index = facts::index(name)?;
        let means = match opener.raise(name)? {
            Ok(fd) => Means::Link { fd },
            Err(number) => Means::Kept { number },
        };
        Ok(Shield { name: name.to_owned(), index, means })
    }

    /// Like [`Shield::raise`], on behalf of another process.
    pub(crate) fn raise_for(name: &str, owner: &Owner) -> Result<Shield, DeviceError> {
        let index = facts::index(name)?;
        let shield = |means| Shield { name: name.to_owned(), index, means };
        let inherited = clear(name, index, |o| o.fate() == Fate::Ended)?;
        // If a TCX link fails, try a cls_bpf filter, which either works or returns the same error.
        if let Ok(fd) = Program::attach_to_ingress(&DROP_ALL, index) {
            return Ok(shield(Means::Link { fd }));
        }
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
        let made = tc::make_place(&n, index).map_err(failed)? || inherited;
        let handle = tc::add(&n, index, owner, made).map_err(failed)?;
        let handle = handle.ok_or_else(|| DeviceError::Busy { name: name.to_owned() })?;
        Ok(shield(Means::Filter { handle, made }))
    }

    /// Returns the descriptor of the TCX link. If the shield uses another filter, returns the shield as `Err`.
    pub(crate) fn into_link(mut self) -> Result<OwnedFd, Shield> {
        match std::mem::replace(&mut self.means, Means::Gone) {
            Means::Link { fd } => Ok(fd),
            means => {
                self.means = means;
                Err(self)
            }
        }
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether the shield still applies to the device of this name. False if the device was removed, even if it
    /// was created again.
    pub fn is_up_to_date(&self) -> bool {
        facts::index(&self.name) == Ok(self.index)
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        let (handle, made) = match &self.means {
            Means::Filter { handle, made } => (*handle, *made),
            Means::Kept { number } => {
                // If the process that opens devices has ended, the filter is already removed.
                let _ = opener::client().map(|o| o.lower(&self.name, *number));
                return;
            }
            Means::Link { .. } | Means::Gone => return,
        };
        let Ok(n) = Netlink::open() else { return };
        // Errors are ignored: if the device was removed, its filters are gone too.
        let _ = tc::remove(&n, self.index, handle);
        if made {
            let _ = tc::remove_place(&n, self.index);
        }
    }
}

/// Removes the filters of all shields whose owner satisfies `wanted` from a device. If the clsact qdisc was created for
/// one of these filters, removes the qdisc too, unless it still holds other filters. Returns true if the qdisc was kept
/// for that reason.
fn clear(name: &str, index: u32, wanted: impl Fn(&Owner) -> bool) -> Result<bool, DeviceError> {
    let failed = |e| DeviceError::from_errno(name, "remove a filter that was left behind", e);
    let n = Netlink::open().map_err(failed)?;
    let mut made = false;
    // An error means that the device has no clsact qdisc, so it has no filters.
    for filter in tc::list(&n, index).unwrap_or_default() {
        if wanted(&filter.owner) {
            tc::remove(&n, index, filter.handle).map_err(failed)?;
            made |= filter.made;
        }
    }
    Ok(made && !tc::remove_place(&n, index).map_err(failed)?)
}

/// A shield's filter that was found on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The device.
    pub device: String,
    /// The ID of the process that owns the filter.
    pub pid: u32,
    /// The state of that process.
    pub fate: Fate,
    filter: Filter,
    index: u32,
}

/// Finds the shields on all devices, whichever process owns them. TCX links are not listed,
/// because the kernel removes them when their process ends.
///
/// # Errors
/// When the devices cannot be listed.
pub fn found() -> Result<Vec<Found>, DeviceError> {
    let n = Netlink::open().map_err(|e| DeviceError::from_errno("devices", "list their filters", e))?;
    let mut all = Vec::new();
    for d in facts::all()? {
        // A device that was removed meanwhile has no filters.
        let filters = tc::list(&n, d.index).unwrap_or_default();
        all.extend(filters.into_iter().map(|filter| Found {
            device: d.name.clone(),
            pid: filter.owner.pid,
            fate: filter.owner.fate(),
            filter,
            index: d.index,
        }));
    }
    Ok(all)
}

/// Removes a found filter, unless its owner still runs.
///
/// # Errors
/// When the kernel does not permit it.
pub fn remove(found: &Found) -> Result<(), DeviceError> {
    let mine = |o: &Owner| *o == found.filter.owner && o.fate() != Fate::Alive;
    clear(&found.device, found.index, mine).map(drop)
}
