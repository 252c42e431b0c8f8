// SPDX-License-Identifier: MIT OR Apache-2.0
//! XDP programs beside those of routers: programs that need no sockets, and the running times of any program.

use super::program::{LOAD, ProgramMap, explained, with_maps};
use super::steering::ATTACH;
use crate::device::bpf::{self, Operation, Program, XdpMode};
use crate::device::error::DeviceError;
use crate::device::{facts, xdp_program};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A program that the driver of a device runs for each received frame. The kernel detaches it when this is dropped, or when
/// the process ends.
#[derive(Debug)]
pub struct AttachedProgram {
    _link: OwnedFd,
}

impl AttachedProgram {
    /// Loads and attaches a program. In `instructions`, the constant of an instruction that loads a map is the index of the map
    /// in `maps`.
    ///
    /// # Errors
    /// When the device is missing, its driver runs no XDP programs, another program is attached, or the kernel refuses the
    /// program: its reason.
    pub fn new(
        device: &str,
        instructions: &[Operation],
        maps: &[&ProgramMap],
    ) -> Result<AttachedProgram, DeviceError> {
        let index = facts::index(device)?;
        let program = with_maps(instructions, |i| Some(maps.get(i)?.map().fd()));
        let program = program.ok_or_else(|| DeviceError::from_errno(device, LOAD, Errno::BADF))?;
        let link = explained(device, 0, &program)?.attach_as_xdp(index, XdpMode::Driver);
        Ok(AttachedProgram { _link: link.map_err(|e| DeviceError::from_errno(device, ATTACH, e))? })
    }
}

/// The XDP program of a device, whoever attached it, while the kernel counts its runs. Counting slows all programs down.
#[derive(Debug)]
pub struct ObservedProgram {
    program: Program,
    device: String,
    _counting: OwnedFd,
}

impl ObservedProgram {
    /// Starts to count the runs of the program of a device.
    ///
    /// # Errors
    /// When the device runs no program, the kernel is older than Linux 5.8, or the process lacks CAP_SYS_ADMIN.
    pub fn of(device: &str) -> Result<ObservedProgram, DeviceError> {
        let failed = |e| DeviceError::from_errno(device, "count the runs of its XDP program", e);
        let id = xdp_program(device)?.ok_or_else(|| DeviceError::Invalid {
            name: device.to_owned(),
            what: "it runs no XDP program".into(),
        })?;
        let program = Program::with_id(id).map_err(failed)?;
        Ok(ObservedProgram {
            program,
            device: device.to_owned(),
            _counting: bpf::count_runs().map_err(failed)?,
        })
    }
    /// The number of runs and the time that they took.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn runs(&self) -> Result<(u64, Duration), DeviceError> {
        self.program.runs().map_err(|e| {
            let errno = Errno::from_io_error(&e).unwrap_or(Errno::OPNOTSUPP);
            DeviceError::from_errno(&self.device, "count the runs of its XDP program", errno)
        })
    }
}
