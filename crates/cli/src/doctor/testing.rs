// SPDX-License-Identifier: MIT OR Apache-2.0
//! A made-up host: a folder with files of `/proc` and `/sys`, and a kernel that answers from tables.
#![allow(clippy::unwrap_used)]

use super::checks::Check;
use super::finding::{Change, Finding, Severity};
use super::host::{Device, Filter, Host, Kernel, Limit};
use super::scope::Scope;
use castanet_graph::Graph;
use castanet_io::LinkType;
use castanet_io::device::{
    Abilities, DeviceInfo, Offload, Peer, ReceiveRing, Relations, Statistics, XdpFeatures,
};
use castanet_lang::Unknown;
use rustix::thread::CapabilitySet;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// The checked graph of a text.
pub fn graph(text: &str) -> Graph {
    let source = crate::load::Source::text("a.click", text, Vec::new());
    let loaded = crate::load::load(&source, None, Unknown::Error);
    assert!(!loaded.failed(), "{:?}", loaded.diagnostics);
    loaded.graph
}

/// A device that is up: Ethernet, MTU 1500.
pub fn device(name: &str, index: u32) -> Device {
    let info = DeviceInfo {
        name: name.into(),
        index,
        up: true,
        running: true,
        mtu: 1500,
        link: LinkType::ETHERNET,
        ether: Some([2, 0, 0, 0, 0, index as u8]),
        ether_broadcast: None,
        ip: None,
        broadcast: None,
        gateway: None,
        xdp: None,
        statistics: Statistics::default(),
    };
    Device { info, relations: Relations { index, ..Relations::default() } }
}

/// A made-up kernel.
pub struct Fake {
    pub devices: Vec<Device>,
    pub driver: &'static str,
    pub queues: u32,
    pub xdp: XdpFeatures,
    /// The offloads that are on, by device.
    pub offloads: Vec<(&'static str, Offload)>,
    pub rings: BTreeMap<&'static str, ReceiveRing>,
    pub filters: Vec<Filter>,
    pub other_filters: [Vec<String>; 2],
    pub capabilities: CapabilitySet,
    pub memory: (Option<u64>, Option<u64>),
    pub files: (Option<u64>, Option<u64>),
    /// The changes that were made.
    pub changes: RefCell<Vec<Change>>,
}

impl Default for Fake {
    /// Two devices without trouble, and all rights.
    fn default() -> Fake {
        Fake {
            devices: vec![device("eth0", 2), device("eth1", 3)],
            driver: "ice",
            queues: 1,
            xdp: XdpFeatures { basic: true, redirect: true, zero_copy: true, several_buffers: true },
            offloads: Vec::new(),
            rings: BTreeMap::new(),
            filters: Vec::new(),
            other_filters: Default::default(),
            capabilities: CapabilitySet::all(),
            memory: (None, None),
            files: (Some(1 << 20), Some(1 << 20)),
            changes: RefCell::new(Vec::new()),
        }
    }
}

impl Fake {
    /// A device, to change it.
    pub fn device(&mut self, name: &str) -> &mut Device {
        self.devices.iter_mut().find(|d| d.info.name == name).unwrap()
    }
    /// Joins two devices to a pair.
    pub fn pair(mut self, a: &str, b: &str) -> Fake {
        let (i, j) = (self.device(a).info.index, self.device(b).info.index);
        self.device(a).relations.peer = Peer::Here(j);
        self.device(b).relations.peer = Peer::Here(i);
        self.driver = "veth";
        self
    }
}

impl Kernel for Fake {
    fn devices(&self) -> Result<Vec<Device>, String> {
        Ok(self.devices.clone())
    }
    fn abilities(&self, _: &DeviceInfo) -> Abilities {
        Abilities { driver: Some(self.driver.into()), queues: self.queues, xdp: Some(self.xdp) }
    }
    fn offload(&self, device: &str, offload: Offload) -> Option<bool> {
        Some(self.offloads.contains(&(device, offload)))
    }
    fn receive_ring(&self, device: &str) -> Option<ReceiveRing> {
        self.rings.get(device).copied()
    }
    fn filters(&self) -> Result<Vec<Filter>, String> {
        Ok(self.filters.clone())
    }
    fn other_filters(&self, _: u32) -> Result<[Vec<String>; 2], String> {
        Ok(self.other_filters.clone())
    }
    fn capabilities(&self) -> CapabilitySet {
        self.capabilities
    }
    fn limit(&self, limit: Limit) -> (Option<u64>, Option<u64>) {
        if limit == Limit::Files { self.files } else { self.memory }
    }
    fn change(&self, change: &Change) -> Result<(), String> {
        self.changes.borrow_mut().push(change.clone());
        Ok(())
    }
}

/// Files of the made-up host, by path.
pub type Files<'a> = &'a [(&'a str, &'a str)];

/// Writes files into a folder. A text that begins with `->` makes a symbolic link.
pub fn tree(folder: &Path, files: Files<'_>) {
    let all = [("proc/self/uid_map", "0 0 4294967295"), ("proc/sys/kernel/osrelease", "6.12.3-x")];
    for (path, text) in all.iter().chain(files) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(to) => std::os::unix::fs::symlink(to, path).unwrap(),
            None => std::fs::write(path, format!("{text}\n")).unwrap(),
        }
    }
}

/// The findings of a check on a host, with a configuration or without one.
pub fn found(check: &Check, kernel: &Fake, files: Files<'_>, text: Option<&str>) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path(), files);
    let host = Host::new(folder.path(), kernel).unwrap();
    let graph = text.map(graph);
    let scope = graph.as_ref().map_or_else(|| Scope::machine(&host), |g| Scope::of(g, "a.click"));
    (check.look)(&host, &scope).unwrap()
}

/// A row of a table: the kernel, the files, the configuration, and for each finding its severity, a part of what it says,
/// and the command that mends it.
pub type Row<'a> = (Fake, Files<'a>, Option<&'a str>, &'a [(Severity, &'a str, &'a str)]);

/// Checks a table.
pub fn table(check: &Check, rows: Vec<Row<'_>>) {
    for (i, (kernel, files, text, want)) in rows.into_iter().enumerate() {
        let all = found(check, &kernel, files, text);
        assert_eq!(all.len(), want.len(), "row {i}: {all:#?}");
        for (finding, (severity, what, help)) in all.iter().zip(want) {
            assert_eq!(finding.severity, *severity, "row {i}: {finding:#?}");
            assert!(finding.what.contains(what), "row {i}: {finding:#?}");
            assert!(finding.help().contains(help), "row {i}: {finding:#?}");
            assert!(!finding.what.ends_with('.') && !finding.why.is_empty() && !finding.why.ends_with('.'));
        }
    }
}
