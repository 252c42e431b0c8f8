// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel of this host.

use super::finding::Change;
use super::host::{Device, Filter, Kernel, Limit};
use castanet_io::device::{
    self, Abilities, DeviceInfo, Offload, ReceiveRing, Relations, Setup, set_up, shield,
};
use castanet_io::privilege;
use rustix::process::Resource;
use rustix::thread::CapabilitySet;

/// The kernel of this host.
pub struct Live;

impl Kernel for Live {
    fn devices(&self) -> Result<Vec<Device>, String> {
        let mut relations = device::relations().map_err(|e| e.to_string())?;
        let all = device::all().map_err(|e| e.to_string())?;
        let with_relations = |info: DeviceInfo| {
            let at = relations.iter().position(|r| r.index == info.index);
            let relations = at.map_or_else(
                || Relations { index: info.index, ..Relations::default() },
                |i| relations.swap_remove(i),
            );
            Device { info, relations }
        };
        Ok(all.into_iter().map(with_relations).collect())
    }
    fn abilities(&self, device: &DeviceInfo) -> Abilities {
        Abilities::of(device)
    }
    fn offload(&self, device: &str, offload: Offload) -> Option<bool> {
        offload.is_on(device)
    }
    fn receive_ring(&self, device: &str) -> Option<ReceiveRing> {
        device::receive_ring(device)
    }
    fn filters(&self) -> Result<Vec<Filter>, String> {
        let found = shield::found().map_err(|e| e.to_string())?;
        Ok(found.into_iter().map(|f| Filter { device: f.device, pid: f.pid, fate: f.fate }).collect())
    }
    fn other_filters(&self, index: u32) -> Result<[Vec<String>; 2], String> {
        device::other_filters(index).map_err(|e| e.to_string())
    }
    fn capabilities(&self) -> CapabilitySet {
        privilege::effective().unwrap_or_else(|_| CapabilitySet::empty())
    }
    fn limit(&self, limit: Limit) -> (Option<u64>, Option<u64>) {
        let limit = rustix::process::getrlimit(match limit {
            Limit::LockedMemory => Resource::Memlock,
            Limit::Files => Resource::Nofile,
        });
        (limit.current, limit.maximum)
    }
    fn change(&self, change: &Change) -> Result<(), String> {
        let set = |device: &str, setup: Setup| set_up(device, &setup);
        let done = match change {
            Change::Sysctl { .. } => return Err("a file".into()),
            Change::Offload { device, offload } => offload.switch_off(device),
            Change::Ring { device, size } => device::set_receive_ring(device, *size),
            Change::Mtu { device, mtu } => set(device, Setup { mtu: Some(*mtu), ..Setup::default() }),
            Change::Up { device } => set(device, Setup { up: Some(true), ..Setup::default() }),
            Change::Release { device } => device::release(device),
            Change::DetachXdp { device, mode } => device::detach_xdp(device, *mode),
            Change::Filter { device, pid } => {
                let found = shield::found().map_err(|e| e.to_string())?;
                let mine = |f: &&shield::Found| f.device == *device && f.pid == *pid;
                found.iter().filter(mine).try_for_each(shield::remove)
            }
        };
        done.map_err(|e| e.to_string())
    }
}
