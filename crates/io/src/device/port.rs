// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that DPDK's port names stand for.

use super::names;
use std::fs;
use std::path::Path;
use thiserror::Error;

/// No device has this port name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no device for port '{port}'")]
pub struct UnknownPort {
    /// The name that was looked for.
    pub port: String,
    /// The hardware devices of this host, in the order of their numbers: bus address and name.
    pub known: Vec<(String, String)>,
}

impl UnknownPort {
    /// The names that would be right.
    pub fn help(&self) -> String {
        if self.known.is_empty() {
            return "there are no hardware devices here; write the name of a device, such as eth0".into();
        }
        let ports = self.known.iter().enumerate().map(|(n, (bus, name))| format!("{n} or {bus} ({name})"));
        format!("write the name of a device, or a port: {}", ports.collect::<Vec<_>>().join(", "))
    }
}

/// The network devices below a folder of sysfs that have hardware, with its bus address, ordered by that.
fn hardware(class: &Path) -> Vec<(String, String)> {
    let bus = |name: &str| {
        let device = fs::canonicalize(class.join(name).join("device")).ok()?;
        let last = |path: &Path| Some(path.file_name()?.to_str()?.to_string());
        let own = last(&device)?;
        // A virtio device lies below the device of its bus.
        if own.starts_with("virtio") { last(device.parent()?) } else { Some(own) }
    };
    let all = fs::read_dir(class).into_iter().flatten().flatten();
    let named = all.filter_map(|entry| entry.file_name().into_string().ok());
    let mut out: Vec<(String, String)> = named.filter_map(|name| Some((bus(&name)?, name))).collect();
    out.sort();
    out
}

fn find(port: &str, names: &[String], known: Vec<(String, String)>) -> Result<String, UnknownPort> {
    if names.iter().any(|n| n == port) {
        return Ok(port.to_string());
    }
    // DPDK also accepts PCI addresses without the domain 0000.
    let is_bus = |bus: &str| bus == port || bus.strip_prefix("0000:") == Some(port);
    let found = match port.parse::<usize>() {
        Ok(n) => known.get(n),
        Err(_) => known.iter().find(|(bus, _)| is_bus(bus)),
    };
    match found {
        Some((_, name)) => Ok(name.clone()),
        None => Err(UnknownPort { port: port.to_string(), known }),
    }
}

/// Returns the name of the device for which DPDK has a port name: the name of a device, the bus address of its hardware
/// (`0000:03:00.0`), or a number. As in DPDK, hardware devices are numbered from 0 on in the order of their addresses.
///
/// # Errors
/// When there is no such device.
pub fn device_of_port(port: &str) -> Result<String, UnknownPort> {
    let names = names();
    let mut known = hardware(Path::new("/sys/class/net"));
    // The folder may show the devices of another network namespace.
    known.retain(|(_, name)| names.contains(name));
    find(port, &names, known)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn ports_are_names_addresses_and_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let class = &folder.path().join("class");
        let virtio = Some("0000:07:00.0/virtio10");
        for (name, bus) in
            [("ens5", Some("0000:05:00.0")), ("ens3", Some("0000:03:00.1")), ("lo", None), ("eth0", virtio)]
        {
            fs::create_dir_all(class.join(name)).unwrap();
            if let Some(bus) = bus {
                let device = folder.path().join("devices").join(bus);
                fs::create_dir_all(&device).unwrap();
                symlink(device, class.join(name).join("device")).unwrap();
            }
        }
        let names = ["lo", "ens3", "ens5", "eth0", "7"].map(String::from);
        let device = |port: &str| find(port, &names, hardware(class)).map_err(|e| e.help());
        for (port, name) in [
            ("ens5", "ens5"),
            ("lo", "lo"),
            ("0", "ens3"),
            ("1", "ens5"),
            ("0000:05:00.0", "ens5"),
            ("2", "eth0"),
        ] {
            assert_eq!(device(port).as_deref(), Ok(name), "{port}");
        }
        assert_eq!(device("03:00.1").as_deref(), Ok("ens3"));
        assert_eq!(device("07:00.0").as_deref(), Ok("eth0"));
        assert_eq!(device("7").as_deref(), Ok("7"), "the name of a device comes first");
        let help = "write the name of a device, or a port: 0 or 0000:03:00.1 (ens3), 1 or 0000:05:00.0 (ens5), \
            2 or 0000:07:00.0 (eth0)";
        for port in ["3", "eth9", "05:00.1", ""] {
            assert_eq!(device(port), Err(help.to_string()), "{port}");
        }
        assert!(
            find("0", &names, Vec::new()).unwrap_err().help().starts_with("there are no hardware devices")
        );
    }
}
