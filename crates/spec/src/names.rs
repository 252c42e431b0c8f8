// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that a configuration defines: elements, addresses (AddressInfo) and ports (PortInfo), by scope.

mod elements;

use crate::anno;
use crate::origin::Origin;
use crate::services;
use elements::ElementNames;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The addresses that one name stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address.
    pub ip: Option<[u8; 4]>,
    /// IPv4 prefix: address and mask.
    pub net: Option<([u8; 4], [u8; 4])>,
    /// Ethernet address.
    pub ether: Option<[u8; 6]>,
    /// IPv6 address.
    pub ip6: Option<[u8; 16]>,
    /// IPv6 prefix: address and length.
    pub net6: Option<([u8; 16], u8)>,
    /// The gateway of the default route through the device with this name.
    pub gateway: Option<[u8; 4]>,
}

impl Addresses {
    /// Returns these addresses, with missing ones taken from `other`.
    fn or(self, other: Addresses) -> Addresses {
        Addresses {
            ip: self.ip.or(other.ip),
            net: self.net.or(other.net),
            ether: self.ether.or(other.ether),
            ip6: self.ip6.or(other.ip6),
            net6: self.net6.or(other.net6),
            gateway: self.gateway.or(other.gateway),
        }
    }
}

/// The addresses of the machine's devices by device name, or why they cannot be read.
pub type OfDevices = Result<HashMap<String, Addresses>, Arc<dyn Error + Send + Sync>>;
/// A function that reads the addresses of the machine's devices.
pub type Devices = fn() -> OfDevices;

/// The largest number of names with which a misspelt name is compared. With more names, no name is suggested.
const MOST_COMPARED: usize = 5000;

/// All names that a configuration defines, by full name. A lookup starts in a scope and continues outward.
#[derive(Clone, Debug, Default)]
pub struct Names {
    addresses: HashMap<String, Addresses>,
    ports: HashMap<(String, u8), u16>,
    annotations: HashMap<String, (usize, Option<usize>)>,
    elements: ElementNames,
    /// The shares of processor time that ScheduleInfo sets for an element's task, by element index. The inner key names
    /// the compound for which a share was set, or is "" if the share was set for the element itself.
    shares: HashMap<usize, BTreeMap<String, f64>>,
    homes: HashMap<usize, usize>,
    devices: Option<Devices>,
    /// The addresses of devices, once they have been read.
    asked: OnceLock<OfDevices>,
    /// The devices whose addresses were used.
    used: Arc<Mutex<BTreeSet<String>>>,
    seed: Option<u64>,
    workers: Option<usize>,
    trusting: bool,
    reporting: bool,
    folder: Option<Arc<Path>>,
    origin: Origin,
}

fn outward<T>(scope: &str, name: &str, mut get: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let mut scope = scope.trim_end_matches('/');
    loop {
        let found = if scope.is_empty() { get(name) } else { get(&format!("{scope}/{name}")) };
        if found.is_some() || scope.is_empty() {
            return found;
        }
        scope = scope.rfind('/').and_then(|i| scope.get(..i)).unwrap_or("");
    }
}

impl Names {
    /// Makes an empty set of names. The configuration has the fewest rights until [`Names::set_origin`] is
    /// called.
    pub fn new() -> Names {
        Names::default()
    }
    /// Returns the addresses that `scope` + `name` stands for, so that the caller can set them. Adds the name if it is
    /// not defined yet.
    pub fn define_addresses(&mut self, scope: &str, name: &str) -> &mut Addresses {
        self.addresses.entry(format!("{scope}{name}")).or_default()
    }
    /// Defines a port name for an IP protocol.
    pub fn define_port(&mut self, scope: &str, name: &str, protocol: u8, port: u16) {
        self.ports.insert((format!("{scope}{name}"), protocol), port);
    }
    /// Defines a name for a packet annotation, by first byte and size (AnnotationInfo). Without a size, the name is
    /// valid for annotations of any size.
    pub fn define_annotation(&mut self, scope: &str, name: &str, offset: usize, size: Option<usize>) {
        self.annotations.insert(format!("{scope}{name}"), (offset, size));
    }
    /// Returns the offset of the first byte of an annotation, and the size if the name implies one. `name` is defined
    /// by the configuration, or predefined.
    pub fn annotation(&self, scope: &str, name: &str) -> Option<(usize, Option<usize>)> {
        let defined = outward(scope, name, |n| self.annotations.get(n).copied());
        defined.or_else(|| anno::ALL.iter().find(|a| a.name == name).map(|a| (a.offset, Some(a.size))))
    }
    /// Reserves memory for the names of more elements.
    pub fn reserve_elements(&mut self, more: usize) {
        self.elements.reserve(more);
    }
    /// Defines an element by its full name. `class` is the real name of its class, never an alias.
    pub fn define_element(&mut self, name: &str, index: usize, class: &'static str) {
        self.elements.add(name, index, class);
    }
    /// The largest share of a task, as a multiple of the ordinary share.
    pub const LARGEST_SHARE: f64 = 32.0;
    /// Sets how much processor time the task of an element gets, as a multiple of the ordinary share (ScheduleInfo).
    /// `compound` is the compound that the share was given to, or empty for the element itself. The shares of several
    /// compounds are multiplied.
    pub fn define_share(&mut self, element: usize, compound: &str, share: f64) {
        self.shares.entry(element).or_default().insert(compound.to_string(), share);
    }
    /// The tickets of an element's task in the stride scheduler; none if no share was set.
    pub fn tickets(&self, element: usize) -> Option<u32> {
        // A share of 1, the ordinary share, stands for 1024 tickets of the stride scheduler.
        let share: f64 = self.shares.get(&element)?.values().product();
        Some((share.min(Self::LARGEST_SHARE) * 1024.0).round().max(1.0) as u32)
    }
    /// Sets the worker that is to run the task of an element (StaticThreadSched).
    pub fn define_home(&mut self, element: usize, worker: usize) {
        self.homes.insert(element, worker);
    }
    /// The worker that is to run the task of an element, if one was set.
    pub fn home(&self, element: usize) -> Option<usize> {
        self.homes.get(&element).copied()
    }
    /// Sets how many workers were requested for the router.
    pub fn set_workers(&mut self, workers: usize) {
        self.workers = Some(workers);
    }
    /// How many workers were requested, if that is known. A router under simulated time always runs on one worker.
    pub fn workers(&self) -> Option<usize> {
        self.workers
    }
    /// Sets the seed of the elements' random numbers (RandomSeed), or removes it.
    pub fn set_seed(&mut self, seed: Option<u64>) {
        self.seed = seed;
    }
    /// The seed of the elements' random numbers, if the configuration gives it.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }
    /// The indices of the elements whose full names start with a prefix such as `compound/`.
    pub fn elements_in(&self, prefix: &str) -> Vec<usize> {
        self.elements.iter().filter(|(n, _)| n.starts_with(prefix)).map(|(_, e)| e).collect()
    }
    /// Sets the function that reads the addresses of devices. Device names then stand for these addresses,
    /// except where the configuration defines other ones.
    pub fn set_devices(&mut self, devices: Devices) {
        self.devices = Some(devices);
    }
    /// Sets the origin of the configuration.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }
    /// The origin of the configuration.
    pub fn origin(&self) -> Origin {
        self.origin
    }
    /// Sets the folder below which clients with the token may name files.
    pub fn set_folder(&mut self, folder: Option<Arc<Path>>) {
        self.folder = folder;
    }
    /// The folder below which clients with the token may name files; none if they may name no file.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
    /// Accepts names of unknown devices as Ethernet addresses, so that a configuration can be checked on a machine
    /// without these devices.
    pub fn trust_devices(&mut self) {
        self.trusting = true;
    }
    /// Makes scripts report undefined variables.
    pub fn report_undefined(&mut self) {
        self.reporting = true;
    }
    /// Whether scripts report undefined variables.
    pub fn reports_undefined(&self) -> bool {
        self.reporting
    }
    /// Whether names of unknown devices are accepted as Ethernet addresses.
    pub fn trusts_devices(&self) -> bool {
        self.trusting
    }
    /// The addresses that the configuration defines for a name. Addresses that the configuration leaves out are taken
    /// from the device with this name.
    pub fn addresses(&self, scope: &str, name: &str) -> Option<Addresses> {
        let defined = outward(scope, name, |n| self.addresses.get(n).copied());
        let of_device = self.of_devices().and_then(|all| all.as_ref().ok()?.get(name).copied());
        if of_device.is_some() {
            self.used.lock().insert(name.to_string());
        }
        match (defined, of_device) {
            (Some(a), Some(b)) => Some(a.or(b)),
            (a, b) => a.or(b),
        }
    }
    /// The addresses of devices; none if [`Names::set_devices`] was not called, so that device names have no meaning.
    fn of_devices(&self) -> Option<&OfDevices> {
        self.devices.map(|ask| self.asked.get_or_init(ask))
    }
    /// Why the addresses of devices could not be read; none if they could.
    pub fn device_failure(&self) -> Option<&(dyn Error + Send + Sync)> {
        self.of_devices().and_then(|all| all.as_ref().err()).map(|e| &**e)
    }
    /// The defined name or device name that is nearest to a misspelt one. None in large configurations, where the
    /// search would be slow.
    pub fn nearest_address(&self, name: &str) -> Option<&str> {
        let devices = self.of_devices().and_then(|all| all.as_ref().ok()).into_iter().flat_map(|d| d.keys());
        let few = self.addresses.len() <= MOST_COMPARED;
        let names = self.addresses.keys().chain(devices).map(String::as_str);
        few.then(|| castanet_lang::nearest(name, names)).flatten()
    }
    /// Whether the addresses of a device were used.
    pub fn uses_device(&self, device: &str) -> bool {
        self.used.lock().contains(device)
    }
    /// The port that a name stands for. If the configuration does not define the name, it is looked up in the
    /// machine's services database.
    pub fn port(&self, scope: &str, name: &str, protocol: u8) -> Option<u16> {
        self.defined_port(scope, name, protocol).or_else(|| services::port(name, protocol))
    }
    /// The port that the configuration defines for a name.
    pub fn defined_port(&self, scope: &str, name: &str, protocol: u8) -> Option<u16> {
        outward(scope, name, |n| self.ports.get(&(n.to_string(), protocol)).copied())
    }
    /// The index of the element with this name.
    pub fn element(&self, scope: &str, name: &str) -> Option<usize> {
        outward(scope, name, |n| self.elements.get(n).map(|e| e.0))
    }
    /// The index and class of the element with this name.
    pub fn element_class(&self, scope: &str, name: &str) -> Option<(usize, &'static str)> {
        outward(scope, name, |n| self.elements.get(n))
    }
    /// The full names of all elements, in no particular order.
    pub fn element_names(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().map(|(name, _)| name)
    }
    /// The element name that is nearest to a misspelt one. None in large configurations, where the search would be
    /// slow.
    pub fn nearest_element(&self, name: &str) -> Option<&str> {
        let few = self.elements.len() <= MOST_COMPARED;
        few.then(|| castanet_lang::nearest(name, self.element_names())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scopes_hide_outer_ones() {
        let mut n = Names::new();
        n.define_element("q", 1, "Queue");
        n.define_element("a/q", 2, "Queue");
        assert_eq!(n.element("", "q"), Some(1));
        assert_eq!(n.element("a/", "q"), Some(2));
        assert_eq!(n.element("a/b/", "q"), Some(2));
        assert_eq!(n.element("b/", "q"), Some(1));
        assert_eq!(n.element("a/", "r"), None);
        n.define_addresses("a/", "host").ip = Some([1, 2, 3, 4]);
        assert_eq!(n.addresses("a/b/", "host").and_then(|a| a.ip), Some([1, 2, 3, 4]));
        assert_eq!(n.addresses("", "host"), None);
    }

    #[test]
    fn names_of_large_configurations_are_not_compared() {
        let mut n = Names::new();
        (0..MOST_COMPARED).for_each(|i| n.define_element(&format!("queue{i}"), i, "Queue"));
        assert_eq!(n.nearest_element("quue7"), Some("queue7"));
        n.define_element("one_more", MOST_COMPARED, "Queue");
        assert_eq!(n.nearest_element("quue7"), None);
    }

    #[test]
    fn devices_say_what_nobody_defined() {
        let mut n = Names::new();
        n.define_addresses("", "eth0").ip = Some([10, 0, 0, 1]);
        assert_eq!(n.addresses("", "eth0").and_then(|a| a.ether), None);
        n.set_devices(|| {
            let device = Addresses {
                ip: Some([9; 4]),
                ether: Some([2; 6]),
                gateway: Some([8; 4]),
                ..Addresses::default()
            };
            Ok(HashMap::from([("eth0".to_string(), device), ("eth1".to_string(), device)]))
        });
        let a = n.addresses("in/", "eth0").unwrap_or_default();
        assert_eq!((a.ip, a.ether, a.gateway), (Some([10, 0, 0, 1]), Some([2; 6]), Some([8; 4])));
        assert_eq!(n.addresses("", "eth1").and_then(|a| a.ip), Some([9; 4]));
        assert_eq!(n.addresses("", "eth2"), None);
        assert!(n.device_failure().is_none());
        // A device without addresses does not count as used.
        assert_eq!(["eth0", "eth1", "eth2"].map(|d| n.uses_device(d)), [true, true, false]);
    }
}
