// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about a host that checks read: files of `/proc` and `/sys`, and answers of the kernel.

use super::finding::Change;
use castanet_io::device::owner::Fate;
use castanet_io::device::{Abilities, DeviceInfo, Offload, Peer, ReceiveRing, Relations};
use rustix::thread::CapabilitySet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A device with its relations.
#[derive(Clone, Debug)]
pub struct Device {
    pub info: DeviceInfo,
    pub relations: Relations,
}

/// A filter by which a router hides the frames of a device from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub device: String,
    pub pid: u32,
    pub fate: Fate,
}

/// The limits that matter to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of locked memory.
    LockedMemory,
    /// Open files.
    Files,
}

/// Answers of the kernel that no file gives, and changes.
pub trait Kernel {
    /// All devices of the network namespace.
    fn devices(&self) -> Result<Vec<Device>, String>;
    /// The abilities of a device's driver.
    fn abilities(&self, device: &DeviceInfo) -> Abilities;
    /// Whether an offload is on; `None` if the driver does not tell.
    fn offload(&self, device: &str, offload: Offload) -> Option<bool>;
    /// The receive ring of a device; `None` if the driver does not tell.
    fn receive_ring(&self, device: &str) -> Option<ReceiveRing>;
    /// The filters of routers, running or killed.
    fn filters(&self) -> Result<Vec<Filter>, String>;
    /// The kinds of the other filters of a device, for received and for sent frames.
    fn other_filters(&self, index: u32) -> Result<[Vec<String>; 2], String>;
    /// The capabilities of this process.
    fn capabilities(&self) -> CapabilitySet;
    /// A limit and the value up to which this process may raise it; `None` means unlimited.
    fn limit(&self, limit: Limit) -> (Option<u64>, Option<u64>);
    /// Makes a change, except of a file.
    fn change(&self, change: &Change) -> Result<(), String>;
}

/// A host.
pub struct Host<'a> {
    root: PathBuf,
    pub kernel: &'a dyn Kernel,
    /// The devices, except the loopback device.
    pub devices: Vec<Device>,
}

impl<'a> Host<'a> {
    /// Reads a host. The folders `proc` and `sys` are below `root`.
    ///
    /// # Errors
    /// When the devices cannot be listed.
    pub fn new(root: &Path, kernel: &'a dyn Kernel) -> Result<Host<'a>, String> {
        let mut devices = kernel.devices()?;
        devices.retain(|d| d.info.name != "lo");
        Ok(Host { root: root.to_path_buf(), kernel, devices })
    }
    /// The text of a file without blanks around it; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_string())
    }
    /// The last part of the path that a symbolic link leads to.
    pub fn link(&self, path: &str) -> Option<String> {
        let to = std::fs::read_link(self.root.join(path)).ok()?;
        Some(to.file_name()?.to_string_lossy().into_owned())
    }
    /// The names in a folder, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
    /// A number below `/proc/sys`; the key has slashes.
    pub fn sysctl(&self, key: &str) -> Option<u32> {
        self.read(&format!("proc/sys/{key}"))?.parse().ok()
    }
    /// The value of `net/ipv4/conf` that holds for a device where the larger one counts, of the device and of `all`. If the
    /// device does not exist, it is that of devices to come.
    pub fn ipv4_conf(&self, device: &str, what: &str) -> u32 {
        let of = |name: &str| self.sysctl(&format!("net/ipv4/conf/{name}/{what}"));
        let own = of(device).or_else(|| of("default"));
        own.unwrap_or(0).max(of("all").unwrap_or(0))
    }
    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.info.name == name)
    }
    /// The other end of a veth pair, if it is in this network namespace.
    pub fn peer(&self, device: &Device) -> Option<&Device> {
        let Peer::Here(index) = device.relations.peer else { return None };
        self.devices.iter().find(|d| d.info.index == index)
    }
    /// The name of the bridge or bond that a device is a port of.
    pub fn master(&self, device: &Device) -> Option<&str> {
        let index = device.relations.master?;
        self.devices.iter().find(|d| d.info.index == index).map(|d| d.info.name.as_str())
    }
    /// Whether `/sys/class/net` shows the devices of this network namespace: it may show those of another one.
    pub fn sys_shows(&self, device: &Device) -> bool {
        let name = &device.info.name;
        let index = self.read(&format!("sys/class/net/{name}/ifindex")).and_then(|t| t.parse::<u32>().ok());
        let address = self.read(&format!("sys/class/net/{name}/address"));
        let words = address.as_deref().map(|a| a.split(':').map(|b| u8::from_str_radix(b, 16).unwrap_or(0)));
        index == Some(device.info.index) && device.info.ether.is_none_or(|e| words.is_some_and(|w| w.eq(e)))
    }
    /// Whether this process is in the initial user namespace, whose map of users covers all numbers.
    pub fn is_initial_user_namespace(&self) -> bool {
        let map = self.read("proc/self/uid_map").unwrap_or_default();
        map.split_whitespace().eq(["0", "0", "4294967295"])
    }
    /// The version of the kernel: major and minor.
    pub fn version(&self) -> Option<(u32, u32)> {
        let text = self.read("proc/sys/kernel/osrelease")?;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
    /// The processors that are online.
    pub fn processors(&self) -> Vec<u32> {
        numbers(&self.read("sys/devices/system/cpu/online").unwrap_or_default())
    }
    /// Makes a change.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn change(&self, change: &Change) -> Result<(), String> {
        let Change::Sysctl { key, value } = change else { return self.kernel.change(change) };
        let path = self.root.join("proc/sys").join(key);
        // Never creates a file: a missing one means that the kernel lacks the function.
        let mut file =
            std::fs::OpenOptions::new().write(true).open(path).map_err(|e| crate::load::reason(&e))?;
        std::io::Write::write_all(&mut file, format!("{value}\n").as_bytes())
            .map_err(|e| crate::load::reason(&e))
    }
}

/// The numbers of a list such as `0-2,5`.
pub fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?)
    };
    // The kernel supports some thousand processors; a wrong list must not take long.
    list.split(',').filter_map(range).flatten().take(1 << 16).collect()
}

/// Whether an address is in the network of another one.
pub fn same_network(a: (IpAddr, u8), b: (IpAddr, u8)) -> bool {
    let length = u32::from(a.1.min(b.1));
    match (a.0, b.0) {
        (IpAddr::V4(x), IpAddr::V4(y)) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(length)).unwrap_or(0);
            x.to_bits() & mask == y.to_bits() & mask
        }
        (IpAddr::V6(x), IpAddr::V6(y)) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(length)).unwrap_or(0);
            x.to_bits() & mask == y.to_bits() & mask
        }
        _ => false,
    }
}
