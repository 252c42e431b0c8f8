// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes declarations in words, for the manual on the terminal, in Markdown and in JSON.

use castanet_spec::codes::{Count, Outputs, Ports, Processing, ProcessingCode};
use castanet_spec::{
    AlignmentCode, ArgKind, ArgSpec, Capability, ClassSpec, Effects, HostUse, Offload, PacketCode,
    Reconfigure, Workers,
};

/// The parts of the doc comment of a class.
pub struct Parts<'a> {
    /// The first paragraph, as one line.
    pub summary: String,
    /// The text after the first paragraph, up to the first heading.
    pub description: String,
    /// Headings with the text below each.
    pub sections: Vec<(&'a str, String)>,
}

impl<'a> Parts<'a> {
    /// Parses a doc comment. A `#` inside a code block is not a heading.
    pub fn of(doc: &'a str) -> Parts<'a> {
        let (mut description, mut sections) = (String::new(), Vec::<(&str, String)>::new());
        let first = |l: &&str| !l.trim().is_empty();
        let lines = doc.lines().skip_while(|l| !first(l));
        let summary: Vec<&str> = lines.clone().take_while(first).map(str::trim).collect();
        let mut code = false;
        for line in lines.skip_while(first) {
            // Doc comments start their lines with a space.
            let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
            code ^= line.trim_start().starts_with("```");
            if let Some(title) = line.strip_prefix("# ").filter(|_| !code) {
                sections.push((title.trim(), String::new()));
                continue;
            }
            let text = sections.last_mut().map_or(&mut description, |s| &mut s.1);
            text.push_str(line);
            text.push('\n');
        }
        let trim = |s: &str| s.trim_matches('\n').to_string();
        let sections = sections.into_iter().map(|(t, s)| (t, trim(&s))).collect();
        Parts { summary: summary.join(" "), description: trim(&description), sections }
    }
    /// Returns the text below a heading.
    pub fn section(&self, title: &str) -> Option<&str> {
        self.sections.iter().find(|s| s.0 == title).map(|s| s.1.as_str())
    }
}

/// Formats a class as `CLASS(POSITIONAL, [OPTIONAL], KEYWORD type = default)`.
pub fn synopsis(spec: &ClassSpec) -> String {
    if spec.args.is_empty() {
        return spec.name.to_string();
    }
    let each: Vec<String> = spec.args.iter().map(argument).collect();
    format!("{}({})", spec.name, each.join(", "))
}

fn argument(a: &ArgSpec) -> String {
    match (a.kind, a.mandatory) {
        (ArgKind::Positional, true) => a.name.to_string(),
        (ArgKind::Positional, false) => format!("[{}]", a.name),
        (ArgKind::Keyword, _) if a.default.is_empty() => format!("{} {}", a.name, a.type_name),
        (ArgKind::Keyword, _) => format!("{} {} = {}", a.name, a.type_name, a.default),
        (ArgKind::Rest, _) => format!("{}...", a.name),
    }
}

/// Describes how an argument is given: by position or by keyword, and whether it is required.
pub fn kind(a: &ArgSpec) -> &'static str {
    match (a.kind, a.mandatory) {
        (ArgKind::Positional, true) => "positional, required",
        (ArgKind::Positional, false) => "positional",
        (ArgKind::Keyword, true) => "keyword, required",
        (ArgKind::Keyword, false) => "keyword",
        (ArgKind::Rest, _) => "any number",
    }
}

/// Returns the last column of an argument's row: its description and its aliases.
pub fn about(a: &ArgSpec) -> String {
    match a.aliases {
        [] => a.doc.to_string(),
        others => format!("{} Also {}.", a.doc, others.join(", ")).trim_start().to_string(),
    }
}

/// A row about ports.
#[derive(PartialEq, Eq, Debug)]
pub struct Port {
    /// The ports that the row describes, such as `input 0` or `outputs 1 and up`.
    pub which: String,
    /// `push`, `pull` or `agnostic`.
    pub moves: &'static str,
    /// The packet types.
    pub packets: String,
    /// Whether the port may be unconnected.
    pub optional: bool,
}

/// Describes the ports of a class. Consecutive ports with equal descriptions share one row.
pub fn ports(spec: &ClassSpec) -> Vec<Port> {
    let (Some(ports), Some(code)) = (Ports::parse(spec.ports), ProcessingCode::parse(spec.processing)) else {
        return Vec::new();
    };
    let packets = PacketCode::parse(spec.packets).unwrap_or(PacketCode::ANY);
    let (wanted, given) = (|n| packets.input(n).to_string(), |n| packets.output(n).to_string());
    let mut rows = side("input", ports.inputs, &|n| code.input(n), &wanted);
    match ports.outputs {
        Outputs::Count(c) => rows.extend(side("output", c, &|n| code.output(n), &given)),
        Outputs::Same(plus) => {
            let more = match plus {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let which = format!("outputs, as many as inputs{more}");
            rows.push(Port { which, moves: moves(code.output(0)), packets: given(0), optional: false });
        }
    }
    rows
}

fn moves(p: Processing) -> &'static str {
    match p {
        Processing::Push => "push",
        Processing::Pull => "pull",
        Processing::Agnostic => "agnostic",
    }
}

/// Ports from this number on share one row.
const SINGLE: usize = 16;

fn side(
    word: &str,
    count: Count,
    processing: &dyn Fn(usize) -> Processing,
    packets: &dyn Fn(usize) -> String,
) -> Vec<Port> {
    let last = count.max.unwrap_or(usize::MAX);
    let row = |from: usize| (moves(processing(from)), packets(from), from >= count.min);
    let mut rows = Vec::new();
    let mut from = 0;
    while from < last && from <= SINGLE {
        let what = row(from);
        let mut to = from + 1;
        while to < last && to <= SINGLE && row(to) == what {
            to += 1;
        }
        let (which, next) = match () {
            () if to > SINGLE && count.max.is_none() => match from {
                0 => (format!("{word}s, any number"), last),
                n => (format!("{word}s {n} and up"), last),
            },
            () if to > SINGLE => (format!("{word}s {from} to {}", last - 1), last),
            () if to == from + 1 => (format!("{word} {from}"), to),
            () => (format!("{word}s {from} to {}", to - 1), to),
        };
        let (moves, packets, optional) = what;
        rows.push(Port { which, moves, packets, optional });
        from = next;
    }
    rows
}

/// Describes the behaviour of a class with several workers.
pub fn workers(w: Workers) -> &'static str {
    match w {
        Workers::Replicate => {
            "Each worker has its own replica. Read handlers add up counts and rates; write handlers reach all replicas."
        }
        Workers::Share => "Workers share one element.",
        Workers::Exclusive => {
            "One instance. If several workers reach the element, each runs it under a lock, and one of them runs its task and timers."
        }
    }
}

/// Describes how a class handles partial checksums and super-packets.
pub fn offload(o: Offload) -> &'static str {
    match o {
        Offload::Transparent => "Partial checksums and super-packets pass unchanged.",
        Offload::Aware => "Partial checksums and super-packets are handled.",
        Offload::None => "Checksums are completed and super-packets segmented before this element.",
    }
}

/// Describes the effects of a class, except those on its packets.
pub fn effects(e: Effects) -> Vec<&'static str> {
    let all = [
        (Effects::PRINTS, "prints messages"),
        (Effects::FILES, "writes files"),
        (Effects::CALLS, "calls handlers of elements"),
        (Effects::STOPS, "may stop the driver"),
        (Effects::LOOKS, "looks at what earlier packets change"),
    ];
    all.into_iter().filter(|(f, _)| e.contains(*f)).map(|f| f.1).collect()
}

/// Describes a capability that a class exports to other elements.
pub fn capability(c: Capability) -> &'static str {
    match c {
        Capability::Storage => "stores packets",
        Capability::EmptyNotifier => "tells pullers when it is no longer empty",
        Capability::FullNotifier => "tells sources when it is no longer full",
        Capability::Offloads => "emits partial checksums and super-packets",
    }
}

/// Describes what a class uses of the host, and the capabilities(7) that it needs for that.
pub fn host(h: HostUse) -> &'static str {
    match h {
        HostUse::Receives => "receives from a device: CAP_NET_RAW",
        HostUse::Sends => "sends to a device: CAP_NET_RAW",
        HostUse::Creates => "creates a device: CAP_NET_ADMIN",
        HostUse::Hides => "hides frames from the host: CAP_NET_ADMIN",
        HostUse::RawSocket => "opens a raw socket: CAP_NET_RAW",
        HostUse::Sockets => "opens sockets: no rights, except for ports below 1024 CAP_NET_BIND_SERVICE",
    }
}

/// Describes the behaviour of a class in sentences with titles: workers, effects, hot swap...
pub fn behaviour(spec: &ClassSpec) -> Vec<(&'static str, String)> {
    let mut out = vec![("Workers", workers(spec.workers).to_string())];
    let join = |words: Vec<&str>| capital(&format!("{}.", words.join(", ")));
    out.push(match effects(spec.effects) {
        none if none.is_empty() => ("Effects", "None except on packets.".to_string()),
        some => ("Effects", join(some)),
    });
    let moves = match (spec.takes_state.trim_end_matches('.'), !spec.counts.is_empty()) {
        ("", false) => "No state moves to the new element.".to_string(),
        ("", true) => "The new element takes over its counts.".to_string(),
        (what, false) => format!("The new element takes over {what}."),
        (what, true) => format!("The new element takes over {what}, and the counts."),
    };
    out.push(("Hot swap", moves));
    let kept = match spec.reconfigure {
        Reconfigure::Refused => None,
        Reconfigure::Keeps => Some("What moves in a hot swap is kept."),
        Reconfigure::Restarts => Some("The element begins anew."),
    };
    if let Some(kept) = kept {
        out.push(("Reconfiguration", format!("`config` can be written while the router runs. {kept}")));
    }
    out.push(("Offload", offload(spec.offload).to_string()));
    if spec.task {
        out.push(("Task", "Has a task, unless its neighbours push or pull its packets.".to_string()));
    }
    match AlignmentCode::parse(spec.alignment) {
        Some(AlignmentCode::Data(m, o)) => {
            out.push(("Alignment", format!("The address of packet data, modulo {m}, is {o}.")));
        }
        Some(AlignmentCode::Network(m)) => {
            out.push(("Alignment", format!("The address of the network header is a multiple of {m}.")));
        }
        Some(AlignmentCode::Passed) | None => {}
    }
    for (condition, code) in spec.packets_if {
        if let Some(code) = PacketCode::parse(code) {
            out.push(("Packets", format!("With {condition}: {code}.")));
        }
    }
    if !spec.host.is_empty() {
        out.push(("Host", join(spec.host.iter().map(|h| host(*h)).collect())));
    }
    if !spec.capabilities.is_empty() {
        out.push(("Exports", join(spec.capabilities.iter().map(|c| capability(*c)).collect())));
    }
    out
}

/// Returns the text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// Returns the folder of a class's family. If a class has several files, they are in a subfolder of that folder.
pub fn folder(spec: &ClassSpec) -> &'static str {
    // The classes of a package form one family.
    let package = || spec.module.split("::").next().unwrap_or_default();
    castanet_classes::family(spec).unwrap_or_else(package)
}

/// Returns the title of a family from the name of its folder.
pub fn family(folder: &str) -> String {
    match folder {
        "arp" | "ip" | "tcp" | "icmp" | "nat" | "aqm" | "ip6" => folder.to_uppercase(),
        "ether" => "Ethernet".into(),
        "info" => "Information".into(),
        "sched" => "Scheduling".into(),
        "classify" => "Classification".into(),
        "measure" => "Measurement".into(),
        "source" => "Sources".into(),
        "trace" => "Traces".into(),
        other => capital(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_classes::Registry;

    #[test]
    fn doc_comments_fall_into_parts() {
        let doc = "\n One,\n and more.\n\n Two\n three.\n\n # Ports\n In.\n\n # Example\n ```click\n # 1 \"x\"\n Idle;\n ```\n";
        let p = Parts::of(doc);
        assert_eq!((p.summary.as_str(), p.description.as_str()), ("One, and more.", "Two\nthree."));
        assert_eq!(p.section("Ports"), Some("In."));
        assert_eq!(p.section("Example"), Some("```click\n# 1 \"x\"\nIdle;\n```"));
        assert!(Parts::of("").sections.is_empty());
    }

    #[test]
    fn every_port_code_in_words() {
        let any = Registry::new().classes()[0];
        let of = |ports: &'static str, processing: &'static str, packets: &'static str| {
            let spec = ClassSpec { ports, processing, packets, ..*any };
            let row = |p: &Port| {
                format!("{}: {} {}{}", p.which, p.moves, p.packets, if p.optional { " optional" } else { "" })
            };
            super::ports(&spec).iter().map(row).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            of("1/1-2", "a/ah", "ip/same, strip N"),
            "input 0: agnostic IP, header marked; output 0: agnostic as input; output 1: push as input, N bytes less optional"
        );
        assert_eq!(of("0/1", "h/h", "/any"), "output 0: push any");
        assert_eq!(
            of("-/-", "h/h", "any/same"),
            "inputs, any number: push any optional; outputs, any number: push as input optional"
        );
        assert_eq!(
            of("2/1", "h/h", "ip at 0, ether arp/ip"),
            "input 0: push IP; input 1: push ARP in Ethernet; output 0: push IP, header marked"
        );
        assert_eq!(
            of("1-/=", "a", "any/any"),
            "input 0: agnostic any; inputs 1 and up: agnostic any optional; outputs, as many as inputs: agnostic any"
        );
        assert_eq!(
            of("2/=+", "l/h", "any/any"),
            "inputs 0 to 1: pull any; outputs, as many as inputs and 1 more: push any"
        );
        assert_eq!(of("1-99/0", "h", "any/"), "input 0: push any; inputs 1 to 98: push any optional");
        assert_eq!(of("x", "h", "any/"), "");
    }

    #[test]
    fn every_handler_and_class_has_words() {
        use castanet_runtime::{global_handlers::global, handlers::provided};
        for h in provided(true, true).chain(global(true)) {
            assert!(!h.doc.is_empty() && !crate::doc::handlers::flags(h.flags).is_empty(), "{}", h.name);
        }
        for spec in Registry::new().classes() {
            assert!(!synopsis(spec).is_empty() && !Parts::of(spec.doc).summary.is_empty(), "{}", spec.name);
            assert!(Parts::of(spec.doc).summary.starts_with(spec.summary()), "{}", spec.name);
        }
    }
}
