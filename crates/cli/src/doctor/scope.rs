// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a host that is examined: all of it, or what a configuration needs, by the declarations of its classes.

use super::host::Host;
use castanet_graph::{Graph, Visit};
use castanet_spec::{Given, HostUse};
use std::collections::BTreeMap;

/// The use of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub device: String,
    /// The elements that receive from it and send to it, and those that create it.
    pub receives: Vec<usize>,
    pub sends: Vec<usize>,
    pub creates: Vec<usize>,
    /// Whether the host does not see its frames, by SNIFFER false or KernelFilter.
    pub hidden: bool,
    /// Whether METHOD XDP is used.
    pub xdp: bool,
}

impl Use {
    /// Whether the host's own network stack sees the frames that the router receives.
    pub fn is_shared(&self) -> bool {
        !self.receives.is_empty() && !self.hidden && !self.xdp
    }
    /// Whether the device must exist before the router starts.
    pub fn is_needed(&self) -> bool {
        self.creates.is_empty() && !(self.receives.is_empty() && self.sends.is_empty())
    }
}

/// An element that uses something of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub element: usize,
    pub what: HostUse,
    /// Whether it uses METHOD XDP, and whether it hides frames from the host.
    pub xdp: bool,
    pub hides: bool,
}

/// The part of the host that is examined.
pub struct Scope<'a> {
    /// The configuration; `None` for the whole machine.
    pub graph: Option<&'a Graph>,
    /// The devices: those of the configuration, or all that are up.
    pub uses: Vec<Use>,
    pub users: Vec<User>,
    /// The name of the configuration, for commands.
    pub file: String,
}

/// The device in `drop dev NAME`.
fn dropped(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    (words.next() == Some("drop") && words.next() == Some("dev")).then(|| words.next())?
}

impl<'a> Scope<'a> {
    /// The whole machine.
    pub fn machine(host: &Host<'_>) -> Scope<'a> {
        let up = host.devices.iter().filter(|d| d.info.up);
        let uses = up.map(|d| Use { device: d.info.name.clone(), ..Use::default() }).collect();
        Scope { graph: None, uses, users: Vec::new(), file: String::new() }
    }

    /// The scope of a configuration. `file` is its name.
    pub fn of(graph: &'a Graph, file: &str) -> Scope<'a> {
        let mut uses: BTreeMap<String, Use> = BTreeMap::new();
        let mut users = Vec::new();
        for e in 0..graph.len() {
            let (Some(element), Some(spec)) = (graph.element(e), graph.spec(e)) else { continue };
            let given = Given::new(&element.config, spec.args);
            let of_type = |name: &str| spec.args.iter().find(|a| a.type_name == name);
            let xdp = of_type("method")
                .and_then(|a| given.text(a.name))
                .is_some_and(|m| m.eq_ignore_ascii_case("XDP"));
            let hides = given.flag("SNIFFER") == Some(false);
            let device = of_type("device").and_then(|a| given.text(a.name)).filter(|d| !d.is_empty());
            for &what in spec.host {
                users.push(User { element: e, what, xdp, hides });
                if what == HostUse::Hides {
                    for text in given.rest() {
                        if let Some(device) = dropped(&text) {
                            uses.entry(device.to_string()).or_default().hidden = true;
                        }
                    }
                }
                let Some(device) = &device else { continue };
                let of = uses.entry(device.clone()).or_default();
                of.xdp |= xdp;
                of.hidden |= hides;
                match what {
                    HostUse::Receives => of.receives.push(e),
                    HostUse::Sends => of.sends.push(e),
                    HostUse::Creates => of.creates.push(e),
                    _ => {}
                }
            }
        }
        let uses = uses.into_iter().map(|(device, of)| Use { device, ..of }).collect();
        Scope { graph: Some(graph), uses, users, file: file.to_string() }
    }

    /// The declaration of an element, such as `in :: FromDevice`.
    pub fn declaration(&self, element: usize) -> String {
        self.graph.map(|g| g.declaration(element)).unwrap_or_default()
    }

    /// The elements that send to devices and that packets received from a device reach.
    pub fn sends_what_it_receives(&self, of: &Use) -> bool {
        let Some(graph) = self.graph else { return false };
        let sends =
            |f: usize| graph.spec(f).is_some_and(|s| s.uses(HostUse::Sends) || s.uses(HostUse::RawSocket));
        of.receives.iter().any(|&e| {
            let visit = |f| if sends(f) { Visit::Take } else { Visit::Pass };
            !graph.downstream_filter(e, None, visit).is_empty()
        })
    }

    /// Whether an element, except those that open devices, names a text in its configuration string.
    pub fn names(&self, text: &str) -> bool {
        let Some(graph) = self.graph else { return false };
        (0..graph.len()).any(|e| {
            let opens = graph.spec(e).is_some_and(|s| !s.host.is_empty());
            !opens && graph.element(e).is_some_and(|x| has_word(&x.config, text))
        })
    }

    /// Returns the findings as they are for a configuration, and as notes for a machine.
    pub fn graded(&self, finding: super::finding::Finding) -> super::finding::Finding {
        if self.graph.is_some() { finding } else { finding.without_file() }
    }
}

/// Whether a text has this word: not as a part of a longer name or address.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::graph;
    use super::*;

    #[test]
    fn words_are_whole() {
        for (text, word, has) in [
            ("10.0.0.1 2:0:0:0:0:1", "10.0.0.1", true),
            ("10.0.0.1/24", "10.0.0.1", true),
            ("10.0.0.11", "10.0.0.1", false),
            ("110.0.0.1", "10.0.0.1", false),
            ("eth0:ip", "eth0", true),
            ("eth0.5", "eth0", false),
            ("", "eth0", false),
        ] {
            assert_eq!(has_word(text, word), has, "{text} {word}");
        }
    }

    #[test]
    fn declarations_say_what_a_configuration_uses() {
        let g = graph(
            "in :: FromDevice(eth0, SNIFFER false) -> Queue -> out :: ToDevice(eth1, METHOD XDP);
             FromHost(fake0, 10.0.0.1/24) -> Discard; x :: FromDevice(eth2) -> Discard; KernelFilter(drop dev eth2);
             RawSocket(UDP) -> Discard;",
        );
        let scope = Scope::of(&g, "a.click");
        let of = |device: &str| scope.uses.iter().find(|u| u.device == device).cloned().unwrap_or_default();
        assert!(of("eth0").hidden && !of("eth0").is_shared() && of("eth0").is_needed());
        assert!(scope.sends_what_it_receives(&of("eth0")) && !scope.sends_what_it_receives(&of("eth2")));
        assert!(of("eth1").xdp && of("eth1").is_needed() && of("eth2").hidden);
        assert!(!of("fake0").is_needed() && of("fake0").creates.len() == 1);
        assert_eq!(scope.uses.len(), 4);
        assert_eq!(scope.users.len(), 6);
    }
}
