// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the host's own network stack from seeing what a device receives, so that it does not answer too.

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

/// How the frames are kept away.
#[derive(Debug)]
enum Means {
    /// A program at the ingress that the kernel removes when the descriptor is closed, also when the process is killed.
    Link { fd: OwnedFd },
    /// A filter that stays until it is removed. Kernels before 6.6 and user namespaces know no other.
    Filter { handle: u32, made: bool },
    /// A filter that the process which opens devices keeps, and removes when this process ends.
    Kept { number: u32 },
    /// The descriptor went to another process.
    Gone,
}

/// While it lives the host drops all that a device receives, behind packet sockets, which see it as before.
///
/// The kernel removes it with the process, whatever ends the process, where it has TCX links (Linux 6.6, in the first user
/// namespace). Elsewhere it is a filter of cls_bpf, marked with its owner: what a killed process left behind is removed when the
/// next one shields the device, and by [`remove`].
#[derive(Debug)]
pub struct Shield {
    name: String,
    index: u32,
    means: Means,
}

impl Shield {
    /// Shields the host from a device.
    ///
    /// # Errors
    /// When the device is missing, the system does not permit it or has no such filters.
    pub fn raise(name: &str) -> Result<Shield, DeviceError> {
        let Some(opener) = opener::client() else { return Shield::raise_for(name, &Owner::this()) };
        let index = facts::index(name)?;
        let means = match opener.raise(name)? {
            Ok(fd) => Means::Link { fd },
            Err(number) => Means::Kept { number },
        };
        Ok(Shield { name: name.to_owned(), index, means })
    }

    /// The same on behalf of another process.
    pub(crate) fn raise_for(name: &str, owner: &Owner) -> Result<Shield, DeviceError> {
        let index = facts::index(name)?;
        let shield = |means| Shield { name: name.to_owned(), index, means };
        let inherited = clear(name, index, |o| o.fate() == Fate::Ended)?;
        // What is wrong with the link is wrong with the filter too, or can be done by a filter.
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

    /// The descriptor that keeps the filter, if there is one.
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
    /// Whether the device is still the one that was shielded: one that was removed and made again is not.
    pub fn is_up_to_date(&self) -> bool {
        facts::index(&self.name) == Ok(self.index)
    }
    /// Whether the kernel removes it with the process, whatever ends the process.
    pub fn ends_with_process(&self) -> bool {
        matches!(self.means, Means::Link { .. })
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        let (handle, made) = match &self.means {
            Means::Filter { handle, made } => (*handle, *made),
            Means::Kept { number } => {
                // A process that has ended keeps no filter.
                let _ = opener::client().map(|o| o.lower(&self.name, *number));
                return;
            }
            Means::Link { .. } | Means::Gone => return,
        };
        let Ok(n) = Netlink::open() else { return };
        // Errors are left out: a device that is gone has no filters either.
        let _ = tc::remove(&n, self.index, handle);
        if made {
            let _ = tc::remove_place(&n, self.index);
        }
    }
}

/// Removes the filters of shields on a device whose owners are as wanted, and the place for filters if it is empty then and a
/// shield made it. Whether the place, if it is still there, was made by one of them.
fn clear(name: &str, index: u32, wanted: impl Fn(&Owner) -> bool) -> Result<bool, DeviceError> {
    let failed = |e| DeviceError::from_errno(name, "remove a filter that was left behind", e);
    let n = Netlink::open().map_err(failed)?;
    let mut made = false;
    // A device that has no place for filters has none.
    for filter in tc::list(&n, index).unwrap_or_default() {
        if wanted(&filter.owner) {
            tc::remove(&n, index, filter.handle).map_err(failed)?;
            made |= filter.made;
        }
    }
    Ok(made && !tc::remove_place(&n, index).map_err(failed)?)
}

/// The filter of a shield, as it is found on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The device.
    pub device: String,
    /// The number of the process that made it.
    pub pid: u32,
    /// What became of that process.
    pub fate: Fate,
    filter: Filter,
    index: u32,
}

/// The filters of shields on all devices, of this program or others. Those that the kernel removes itself are not among them.
///
/// # Errors
/// When the system does not tell its devices.
pub fn found() -> Result<Vec<Found>, DeviceError> {
    let n = Netlink::open().map_err(|e| DeviceError::from_errno("devices", "list their filters", e))?;
    let mut all = Vec::new();
    for d in facts::all()? {
        // A device that went meanwhile has no filters.
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

/// Removes a filter that was found, unless its owner runs.
///
/// # Errors
/// When the system does not permit it.
pub fn remove(found: &Found) -> Result<(), DeviceError> {
    let mine = |o: &Owner| *o == found.filter.owner && o.fate() != Fate::Alive;
    clear(&found.device, found.index, mine).map(drop)
}
