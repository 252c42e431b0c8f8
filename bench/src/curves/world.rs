// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts of a measurement (sender, router, receiver), and their configurations.

use super::Sample;
use super::definition::File;
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use std::path::Path;
use std::time::{Duration, Instant};

/// The Ethernet addresses of the sender's, the router's and the receiver's devices. They are reused on every
/// link.
const ETHER: [&str; 3] = ["02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"];
/// The warm-up time in seconds, in which queues fill and averages settle.
const WARM: f64 = 1.0;

/// The processes of a measurement.
pub struct World {
    file: &'static File,
    launcher: Launcher,
    processors: [Option<usize>; 2],
    /// The processes of the sender, the router and the receiver.
    hosts: [Process; 3],
    running: Vec<Process>,
}

/// Extracts the lines of a configuration that create streams. Gives each stream a name, and removes the elements that
/// follow it.
fn streams(text: &str) -> String {
    let lines = text.lines().filter(|l| l.starts_with("Stream("));
    let lines = lines.filter_map(|l| l.split_once(") ->")).enumerate();
    lines.map(|(i, (stream, _))| format!("s{i} :: {stream});\n")).collect()
}

/// Replaces the definition of a compound class by the definition `class`. Each definition must be on one line. `None`
/// if the text does not define this class.
fn with_class(text: &str, class: &str) -> Option<String> {
    let start = class.split_inclusive(' ').take(2).collect::<String>();
    let old = text.lines().find(|l| l.starts_with(&start))?;
    Some(text.replace(old, class))
}

/// The sender's configuration.
fn sender(file: &File) -> Option<String> {
    let defines = file.text.lines().find(|l| l.starts_with("define("))?;
    let source = file.text.lines().find(|l| l.starts_with("elementclass Stream "))?;
    let (start, rest) = source.split_once("RatedSource(")?;
    let (arguments, _) = rest.split_once(") ->")?;
    let [from, to, _] = ETHER;
    Some(format!(
        "{defines}\n{start}RatedSource({arguments}) -> EtherEncap(0x0800, {from}, {to}) -> Queue -> c :: Counter -> ToDevice(to$n); }}\n{}",
        streams(file.text)
    ))
}

/// The router's configuration. Its compound `Stream` receives from a device, and its compound `Link` sends to a device.
fn router(file: &File, scripted: bool) -> Option<String> {
    let strip = if scripted { "" } else { " -> CheckIPHeader" };
    let stream =
        format!("elementclass Stream {{ $n, $header | FromDevice(in$n) -> Strip(14){strip} -> output; }}");
    let old = file.text.lines().find(|l| l.starts_with("elementclass Link "))?;
    let (parameters, n) = if old.contains("$n |") { ("$n | ", "$n") } else { ("", "0") };
    let [_, from, to] = ETHER;
    let link = format!(
        "elementclass Link {{ {parameters}input -> RatedUnqueue($LINK) -> EtherEncap(0x0800, {from}, {to}) -> Queue -> ToDevice(out{n}); }}"
    );
    let text = with_class(&with_class(file.text, &stream)?, &link)?;
    if scripted { Some(text) } else { text.split_once("DriverManager(").map(|t| t.0.to_string()) }
}

/// The receiver's configuration, which repeatedly prints the time and the packet counts by DSCP.
fn receiver(codes: &[u8]) -> String {
    let pattern = |c: &u8| if *c == 0 { "-".to_string() } else { format!("ip dscp {c}") };
    let patterns: Vec<String> = codes.iter().map(pattern).collect();
    let counters: String =
        (0..codes.len()).map(|i| format!("d [{i}] -> c{i} :: Counter -> Discard;\n")).collect();
    let counts: String = (0..codes.len()).map(|i| format!(" $(c{i}.count)")).collect();
    format!(
        "FromDevice(from0) -> Strip(14) -> CheckIPHeader -> d :: IPClassifier({});\n{counters}\
         Script(label again, print \"$(now){counts}\", wait 20ms, goto again);\n",
        patterns.join(", ")
    )
}

/// A time in seconds, and the packet counts at that time.
type Look = (f64, Vec<f64>);

fn look(line: &str) -> Option<Look> {
    let mut numbers = line.split_whitespace().map(|w| w.parse::<f64>().ok());
    Some((numbers.next()??, numbers.collect::<Option<_>>()?))
}

/// Interpolates the counts between two observations.
fn between(a: &Look, b: &Look, time: f64) -> Vec<f64> {
    let part = ((time - a.0) / (b.0 - a.0).max(1e-9)).clamp(0.0, 1.0);
    a.1.iter().zip(&b.1).map(|(x, y)| x + (y - x) * part).collect()
}

impl World {
    /// Creates hosts and links.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission.
    pub fn new(program: &Path, part: &[String], file: &'static File) -> Result<World, String> {
        let launcher = Launcher { program: program.into(), part: part.into() };
        let host = launcher.host(None)?;
        let [sender, receiver] = [launcher.host(Some(host.id()))?, launcher.host(Some(host.id()))?];
        let [e0, e1, e2] = ETHER;
        let links = streams(file.text).lines().count();
        let outs = if file.series.len() > links { links + 1 } else { 1 };
        let up = |names: [&str; 1], n: usize| -> Vec<String> {
            (0..n).map(|i| format!("link set {}{i} up", names[0])).collect()
        };
        let make = |n: usize, near: &str, address: &str, far: &str| -> Vec<String> {
            let one = |i| {
                format!(
                    "link add name {near}{i} address {address} type veth peer name {far}{i} address {e1} netns {}",
                    host.id()
                )
            };
            (0..n).map(one).collect()
        };
        launcher.ip(&sender, &[make(links, "to", e0, "in"), up(["to"], links)].concat())?;
        launcher.ip(&receiver, &[make(outs, "from", e2, "out"), up(["from"], outs)].concat())?;
        launcher.ip(&host, &[up(["in"], links), up(["out"], outs)].concat())?;
        let processors = match castanet_io::namespace::processors()[..] {
            [a, b, ..] => [Some(a), Some(b)],
            _ => [None, None],
        };
        Ok(World { file, launcher, processors, hosts: [sender, host, receiver], running: Vec::new() })
    }

    fn text(&self, what: Option<String>) -> Result<String, String> {
        what.ok_or_else(|| format!("{}: it lacks the expected lines", self.file.name))
    }

    fn start(&self, host: usize, text: &str, words: &[String]) -> Result<Process, String> {
        let all: Vec<&str> = ["-e", text].into_iter().chain(words.iter().map(String::as_str)).collect();
        let Some(at) = self.hosts.get(host) else { return Err("no such host".into()) };
        // The router has a CPU of its own. The sender and the receiver share the other one.
        let processor = self.processors.get(usize::from(host == 1)).copied().flatten();
        self.launcher.castanet(at, processor, &all)
    }

    /// Restarts router and receiver with these variables, and waits until packets arrive.
    ///
    /// # Errors
    /// No packets arrive in time.
    pub fn route(&mut self, words: &[String], codes: &[u8]) -> Result<(), String> {
        self.running.clear();
        let router = self.start(1, &self.text(router(self.file, false))?, words)?;
        let receiver = self.start(2, &receiver(codes), &[])?;
        self.running = vec![router, receiver];
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, rates) = self.measure(&[format!("{}=100", self.file.variable)], 0.05, 0.1)?;
            if rates.iter().sum::<f64>() > 0.0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                let complaints: Vec<String> = self.running.iter().map(Process::complaints).collect();
                return Err(format!("nothing comes through: {}", complaints.join(" ")));
            }
        }
    }

    /// Sends for a while. Returns rates in packets per second: the mean sending rate of a stream, and the rate of
    /// arrival of each DSCP.
    fn measure(&mut self, words: &[String], warm: f64, time: f64) -> Result<(f64, Vec<f64>), String> {
        let text = self.text(sender(self.file))?;
        let n = streams(self.file.text).lines().count();
        let counts: String = (0..n).map(|i| format!(" $(s{i}/c.count)")).collect();
        let script = format!(
            "DriverManager(wait {warm:.3}, print \"$(now){counts}\", wait {time:.3}, print \"$(now){counts}\", stop);"
        );
        let sender = self.start(0, &format!("{text}{script}"), words)?;
        let limit = PATIENCE + Duration::from_secs_f64(warm + time);
        let line =
            |p: &Process| p.line(limit).and_then(|l| look(&l).ok_or_else(|| format!("it prints '{l}'")));
        let ends = [line(&sender)?, line(&sender)?];
        let [(begin, before), (end, after)] = &ends;
        let seconds = (end - begin).max(1e-9);
        let sent: f64 = before.iter().zip(after).map(|(a, b)| b - a).sum();
        let Some(receiver) = self.running.get(1) else { return Err("the receiver is not running".into()) };
        let mut last = line(receiver)?;
        let mut counts = Vec::new();
        while counts.len() < 2 {
            let next = line(receiver)?;
            for at in [begin, end] {
                if last.0 <= *at && *at < next.0 {
                    counts.push(between(&last, &next, *at));
                }
            }
            if counts.is_empty() && last.0 > *begin {
                return Err("the receiver reported no counts for the time of the measurement".into());
            }
            last = next;
        }
        sender.wait(limit)?;
        let rates = match &counts[..] {
            [a, b, ..] => a.iter().zip(b).map(|(a, b)| (b - a) / seconds).collect(),
            _ => Vec::new(),
        };
        Ok((sent / seconds / n.max(1) as f64, rates))
    }

    /// Sends each stream at the rate that the file uses for `load`, times `scale`. Returns the rates of arrival,
    /// divided by `scale`.
    ///
    /// # Errors
    /// A process has ended.
    pub fn trial(&mut self, load: f64, scale: f64, time: f64) -> Result<Vec<Sample>, String> {
        let rate = ((self.file.value)(load) * scale).round().max(1.0);
        let (sent, rates) = self.measure(&[format!("{}={rate}", self.file.variable)], WARM, time)?;
        if let Some(router) = self.running.first_mut()
            && router.has_ended()
        {
            return Err(format!("the router has ended: {}", router.complaints()));
        }
        Ok(rates.into_iter().map(|y| Sample { load, x: sent / scale, y: y / scale }).collect())
    }

    /// Runs the router with these variables until it has printed the required number of lines. The whole run
    /// should take `seconds`.
    ///
    /// # Errors
    /// The lines do not appear in time.
    pub fn watch(&mut self, words: &[String], lines: usize, seconds: f64) -> Result<String, String> {
        let text = self.text(sender(self.file))?;
        let _sender = self.start(0, &text, words)?;
        let router = self.start(1, &self.text(router(self.file, true))?, words)?;
        let limit = PATIENCE + Duration::from_secs_f64(2.0 * seconds.clamp(0.0, 1e6));
        let mut printed = String::new();
        for _ in 0..lines {
            printed += &router.line(limit)?;
            printed.push('\n');
        }
        router.wait(PATIENCE)?;
        Ok(printed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::curves::ALL;

    #[test]
    fn configurations_take_devices_for_their_ends() {
        for file in ALL.iter().flat_map(|d| d.files) {
            let n = streams(file.text).lines().count();
            assert!(n >= 3, "{}", file.name);
            let from = sender(file).unwrap();
            assert!(from.contains("RatedSource(DATA $") && from.contains("-> ToDevice(to$n); }"), "{from}");
            assert_eq!(from.matches(":: Stream(").count(), n, "{from}");
            for scripted in [false, true] {
                let text = router(file, scripted).unwrap();
                let used =
                    |word: &str| text.lines().filter(|l| !l.starts_with("//") && l.contains(word)).count();
                assert_eq!(
                    (used("RatedSource"), used("FromDevice"), used("ToDevice(out")),
                    (0, 1, 1),
                    "{text}"
                );
                assert_eq!(used("DriverManager"), usize::from(scripted), "{text}");
            }
        }
        assert!(with_class("a -> b;", "elementclass X { input -> output; }").is_none());
    }

    #[test]
    fn looks_are_read_and_drawn_together() {
        let (a, b) = (look("10.5 0 4").unwrap(), look("11.5 10 4").unwrap());
        assert_eq!(between(&a, &b, 10.75), [2.5, 4.0]);
        assert_eq!(between(&a, &b, 99.0), [10.0, 4.0]);
        assert!(look("").is_none() && look("1 x").is_none());
    }
}
