// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of packets in a simulated network.

use crate::simulation::Simulation;
use castanet_graph::network::split_name;
use castanet_runtime::Router;
use castanet_spec::Reason;
use serde::Serialize;
use std::fmt::Write as _;

/// The result of a simulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// How long the network ran, in seconds.
    pub seconds: f64,
    /// The links.
    pub links: Vec<LinkReport>,
    /// The hosts.
    pub hosts: Vec<HostReport>,
    /// The pings.
    pub pings: Vec<PingReport>,
    /// The packets that were dropped, by element and reason.
    pub drops: Vec<DropReport>,
}

/// The frames on a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// The name of the link.
    pub link: String,
    /// The devices that send, joined by `+`.
    pub from: String,
    /// The devices that receive, joined by `+`.
    pub to: String,
    /// Frames that were sent.
    pub sent: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Frames that arrived, once for each device.
    pub received: u64,
}

/// The frames of a host.
#[derive(Clone, Debug, Serialize)]
pub struct HostReport {
    /// The device of the router that the host is connected to.
    pub host: String,
    /// The address of the host, with the length of the prefix.
    pub address: Option<String>,
    /// Frames that the host sent.
    pub sent: u64,
    /// Frames that reached the host.
    pub received: u64,
    /// IP packets that reached the host, but were not for its address.
    pub strays: u64,
}

/// The requests and replies of a ping.
#[derive(Clone, Debug, Serialize)]
pub struct PingReport {
    /// The host that sent.
    pub from: String,
    /// The host or address that was to answer.
    pub to: String,
    /// The address that was to answer.
    pub address: String,
    /// Requests that were sent.
    pub sent: u64,
    /// Replies that arrived.
    pub received: u64,
    /// ICMP errors about requests: time exceeded.
    pub expired: u64,
    /// ICMP errors about requests: destination unreachable.
    pub unreachable: u64,
    /// The shortest, mean and longest round trip time, in seconds.
    pub rtt: Option<[f64; 3]>,
}

impl PingReport {
    /// Whether all requests were sent and answered.
    pub fn answered(&self) -> bool {
        self.sent > 0 && self.received >= self.sent
    }
}

/// Packets that an element dropped for a reason.
#[derive(Clone, Debug, Serialize)]
pub struct DropReport {
    /// The router or host, or the link.
    pub at: String,
    /// The element: `name :: Class`.
    pub element: String,
    /// The reason.
    pub reason: &'static str,
    /// How many packets.
    pub packets: u64,
}

impl Report {
    /// Reads the counts of a router that has run the configuration of a simulation.
    pub fn new(simulation: &Simulation, router: &mut Router, seconds: f64) -> Report {
        let mut report = Report { seconds, ..Report::default() };
        let mut read = |element: &str, handler: &str| -> String {
            router.find(element).and_then(|e| router.read(Some(e), handler, "").ok()).unwrap_or_default()
        };
        for wire in &simulation.wires {
            let [sent, bytes, received] =
                ["sent", "sent_bytes", "received"].map(|h| number(&read(&wire.element, h)));
            let (link, from, to) = (wire.element.clone(), wire.from.join("+"), wire.to.join("+"));
            report.links.push(LinkReport { link, from, to, sent, bytes, received });
        }
        for host in &simulation.hosts {
            report.hosts.push(HostReport {
                host: host.name.clone(),
                address: host.prefix.map(|p| format!("{}/{}", p.addr, p.len)),
                sent: number(&read(&format!("{}sent", host.scope), "count")),
                received: number(&read(&format!("{}in", host.scope), "count")),
                strays: number(&read(&format!("{}strays", host.scope), "count")),
            });
        }
        for ping in &simulation.pings {
            let Some(host) = simulation.hosts.get(ping.host) else { continue };
            let element = |kind: &str| format!("{}{kind}{}", host.scope, ping.number);
            let source = element("ping");
            // The summary has the form "3 packets transmitted, 2 received, 33% packet loss".
            let summary = read(&source, "summary");
            let numbers: Vec<u64> = summary.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            let received = numbers.get(1).copied().unwrap_or(0);
            let trips = ["rtt_min", "rtt_avg", "rtt_max"].map(|h| seconds_of(&read(&source, h)));
            report.pings.push(PingReport {
                from: host.name.clone(),
                to: ping.to.clone(),
                address: ping.address.to_string(),
                sent: number(&read(&source, "count")),
                received,
                expired: number(&read(&element("expired"), "count")),
                unreachable: number(&read(&element("unreachable"), "count")),
                rtt: (received > 0).then_some(trips),
            });
        }
        for ((e, reason), packets) in router.drops() {
            let shared = router.shared();
            let ends = shared.spec(e).is_some_and(|s| s.ends.contains(&reason));
            if ends || matches!(reason, Reason::Stopped | Reason::Consumed | Reason::Discarded) {
                continue;
            }
            let declaration = shared.graph.declaration(e as usize);
            let name = shared.graph.name(e as usize);
            let at = simulation.hosts.iter().find(|h| name.starts_with(&h.scope));
            // A host leaves the frames alone that are for others.
            if at.is_some() && matches!(reason, Reason::NotAnswered | Reason::OtherHost) {
                continue;
            }
            let at = at.map_or_else(|| split_name(name).map_or(name, |n| n.0), |h| &h.name).to_string();
            report.drops.push(DropReport { at, element: declaration, reason: reason.name(), packets });
        }
        report
    }

    /// Whether all pings were answered.
    pub fn succeeded(&self) -> bool {
        self.pings.iter().all(PingReport::answered)
    }

    /// Returns the report as tables.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let number = |n: u64| n.to_string();
        let pings = self.pings.iter().map(|p| {
            let ms = |t: f64| format!("{:.3}", t * 1e3);
            let rtt = p.rtt.map_or("-".into(), |t| t.map(ms).join("/"));
            let mut lost = Vec::new();
            if !p.answered() {
                let silent = p.sent.saturating_sub(p.received + p.expired + p.unreachable);
                for (n, why) in
                    [(p.expired, "time exceeded"), (p.unreachable, "unreachable"), (silent, "lost")]
                {
                    if n > 0 {
                        lost.push(format!("{n} {why}"));
                    }
                }
            }
            let to = if p.to == p.address { p.to.clone() } else { format!("{} ({})", p.to, p.address) };
            vec![p.from.clone(), to, number(p.sent), number(p.received), rtt, lost.join(", ")]
        });
        table(&mut out, ["PING FROM", "TO", "sent", "answered", "min/mean/max ms", ""], pings.collect());
        let links = self.links.iter().map(|l| {
            let (link, from, to) = (l.link.clone(), l.from.clone(), l.to.clone());
            vec![link, from, to, number(l.sent), number(l.received), number(l.bytes)]
        });
        table(&mut out, ["LINK", "from", "to", "sent", "received", "bytes"], links.collect());
        let hosts = self.hosts.iter().map(|h| {
            let address = h.address.clone().unwrap_or_else(|| "-".into());
            vec![h.host.clone(), address, number(h.sent), number(h.received), number(h.strays)]
        });
        table(&mut out, ["HOST AT", "address", "sent", "received", "not for it"], hosts.collect());
        let drops = self.drops.iter();
        let drops = drops.map(|d| vec![d.at.clone(), d.element.clone(), d.reason.into(), number(d.packets)]);
        table(&mut out, ["DROPPED IN", "by", "reason", "packets"], drops.collect());
        let answered = self.pings.iter().filter(|p| p.answered()).count();
        let _ = writeln!(
            out,
            "{} links, {} hosts, {:.3} s simulated; {answered} of {} pings answered",
            self.links.len(),
            self.hosts.len(),
            self.seconds,
            self.pings.len()
        );
        out
    }
}

/// Returns the number at the start of a handler's value; 0 if there is none.
fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

/// Returns the seconds that a time such as `12.5ms` has.
fn seconds_of(text: &str) -> f64 {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = text.strip_suffix(unit).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    let scale = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        _ => 1.0,
    };
    value * scale
}

/// Adds a table, unless it has no rows. Columns of numbers are aligned at the right.
fn table<const N: usize>(out: &mut String, heads: [&str; N], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let mut all: Vec<Vec<String>> = vec![heads.iter().map(ToString::to_string).collect()];
    let is_number = |s: &String| s.bytes().all(|b| b.is_ascii_digit()) && !s.is_empty();
    let right: Vec<bool> = (0..N).map(|c| rows.iter().all(|r| r.get(c).is_some_and(is_number))).collect();
    all.extend(rows);
    let width = |c: usize| all.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in &all {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let width = widths.get(c).copied().unwrap_or(0);
            let _ = match right.get(c) {
                Some(true) => write!(line, "{cell:>width$}  "),
                _ => write!(line, "{cell:<width$}  "),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, want) in [("12.5ms", 0.0125), ("3s\n", 3.0), ("250us", 0.00025), ("0", 0.0), ("x", 0.0)] {
            assert!((seconds_of(text) - want).abs() < 1e-12, "{text}");
        }
    }
}
