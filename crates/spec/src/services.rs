// SPDX-License-Identifier: MIT OR Apache-2.0
//! The services database of the machine: names of ports that no configuration defines.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The database, as services(5) describes it.
const FILE: &str = "/etc/services";

type Ports = HashMap<String, Vec<(u8, u16)>>;

/// Returns the port of a service with this protocol. Reads the services file (`/etc/services`) only once. If this file
/// is missing, no service is known.
pub(crate) fn port(name: &str, protocol: u8) -> Option<u16> {
    static PORTS: OnceLock<Ports> = OnceLock::new();
    let ports = PORTS.get_or_init(|| parse(&std::fs::read(FILE).unwrap_or_default()));
    ports.get(name)?.iter().find(|p| p.0 == protocol).map(|p| p.1)
}

/// Parses lines of the form `NAME PORT/PROTOCOL [ALIAS...]`, with comments. Other lines are skipped.
fn parse(file: &[u8]) -> Ports {
    let mut ports = Ports::new();
    for line in String::from_utf8_lossy(file).lines() {
        let mut words = line.split('#').next().unwrap_or("").split_ascii_whitespace();
        let (Some(name), Some((port, protocol))) =
            (words.next(), words.next().and_then(|w| w.split_once('/')))
        else {
            continue;
        };
        let protocol = match protocol {
            "tcp" => 6,
            "udp" => 17,
            "dccp" => 33,
            "sctp" => 132,
            _ => continue,
        };
        let Ok(port) = port.parse() else { continue };
        for name in std::iter::once(name).chain(words) {
            ports.entry(name.to_string()).or_default().push((protocol, port));
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_database() {
        let ports = parse(
            b"# comment\nhttp 80/tcp www # WorldWideWeb\ndomain\t53/tcp\ndomain 53/udp nameserver\n\
              x 99999/tcp\ny 5\nz /tcp\nw 7/ddp\n\xff 9/udp\nhttp 81/tcp\n\nlast 132/sctp l1 l2",
        );
        let of = |name: &str| ports.get(name).cloned().unwrap_or_default();
        assert_eq!(of("http"), [(6, 80), (6, 81)]);
        assert_eq!((of("www"), of("nameserver")), (vec![(6, 80)], vec![(17, 53)]));
        assert_eq!(of("domain"), [(6, 53), (17, 53)]);
        assert_eq!((of("last"), of("l2")), (vec![(132, 132)], vec![(132, 132)]));
        assert!(["x", "y", "z", "w", "#", ""].iter().all(|name| of(name).is_empty()));
    }

    #[test]
    fn names_fall_back_on_the_database() {
        let mut names = crate::Names::new();
        for (name, ports) in parse(&std::fs::read(FILE).unwrap_or_default()) {
            for (protocol, _) in &ports {
                let first = ports.iter().find(|p| p.0 == *protocol).map(|p| p.1);
                assert_eq!(names.port("a/", &name, *protocol), first, "{name}");
            }
        }
        names.define_port("", "https", 6, 1);
        assert_eq!(names.port("a/", "https", 6), Some(1), "the configuration decides");
    }
}
