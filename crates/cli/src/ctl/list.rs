// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS list`: elements and handlers of a running router.

use super::kinds::Kinds;
use super::{Failure, value_out};
use crate::load::write_out;
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_spec::HandlerFlags;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// Reads the names of all elements.
pub fn elements(client: &mut Client) -> Result<Vec<String>, ClientError> {
    Ok(client.read_text("list", "")?.lines().skip(1).map(ToString::to_string).collect())
}

/// Reads the handlers of an element, or the global handlers for `None`. Returns the name and the flags of
/// each.
pub fn handlers(
    client: &mut Client,
    element: Option<&str>,
) -> Result<Vec<(String, HandlerFlags)>, ClientError> {
    let listing = match element {
        Some(e) => client.read_text(&format!("{e}.handlers"), "")?,
        None => client.read_text("handlers", "")?,
    };
    let line = |l: &str| l.split_once('\t').map(|(n, f)| (n.to_string(), HandlerFlags::parse(f)));
    // Private handlers cannot be called from outside.
    Ok(listing.lines().filter_map(line).filter(|h| !h.1.contains(HandlerFlags::PRIVATE)).collect())
}

/// Describes the flags of a handler in words.
fn words(flags: HandlerFlags) -> String {
    let mut out: Vec<&str> = Vec::new();
    if flags.is_readable() {
        out.push(if flags.intersects(HandlerFlags::PARAMETERS | HandlerFlags::RAW) {
            "read with parameters"
        } else {
            "read"
        });
    }
    if flags.is_writable() {
        out.push(if flags.contains(HandlerFlags::BUTTON) { "write (button)" } else { "write" });
    }
    if flags.intersects(HandlerFlags::RECONFIGURES | HandlerFlags::OPENS_FILES) {
        out.push("restricted");
    }
    if flags.contains(HandlerFlags::DEPRECATED) {
        out.push("deprecated");
    }
    out.join(", ")
}

/// Formats rows as two aligned columns.
fn columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|r| r.0.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(a, b)| format!("{a:width$}  {b}").trim_end().to_string() + "\n").collect()
}

/// How long the load of workers is measured.
const MEASURED: Duration = Duration::from_secs(1);

/// A line of the global handler `workers`.
#[derive(Clone, Copy)]
struct Worker {
    number: u32,
    awake: f64,
    exists: f64,
    tasks: u32,
}

impl Worker {
    fn parse(line: &str) -> Option<Worker> {
        let mut words = line.split('\t');
        let (number, awake) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (exists, tasks) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Worker { number, awake, exists, tasks })
    }
    /// Returns the share of the time since `before` (`None`: since the start) in which the worker was awake. A hot swap
    /// resets the times, so after a swap this is the share since the swap.
    fn load(&self, before: Option<&Worker>) -> f64 {
        let (awake, exists) = match before.filter(|b| b.exists < self.exists) {
            Some(b) => (self.awake - b.awake, self.exists - b.exists),
            None => (self.awake, self.exists),
        };
        if exists > 0.0 { (awake / exists).clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn workers(client: &mut Client) -> Result<Vec<Worker>, ClientError> {
    Ok(client.read_text("workers", "")?.lines().filter_map(Worker::parse).collect())
}

/// Prints the workers with their load, measured for [`MEASURED`].
fn list_workers(client: &mut Client, json: bool) -> Result<(), Failure> {
    let before = workers(client)?;
    std::thread::sleep(MEASURED);
    let loads: Vec<(Worker, f64)> = workers(client)?
        .into_iter()
        .map(|w| (w, w.load(before.iter().find(|b| b.number == w.number))))
        .collect();
    if json {
        let row = |(w, load): &(Worker, f64)| json!({ "worker": w.number, "load": load, "tasks": w.tasks });
        return value_out(&loads.iter().map(row).collect());
    }
    let mut out = format!("{:>6}  {:>6}  {:>5}\n", "WORKER", "LOAD", "TASKS");
    for (w, load) in loads {
        let percent = format!("{:.1} %", 100.0 * load);
        let _ = writeln!(out, "{:>6}  {percent:>6}  {:>5}", w.number, w.tasks);
    }
    Ok(write_out(None, &out)?)
}

/// Prints the elements, the handlers of one element, or the workers.
pub fn list(client: &mut Client, element: Option<&str>, json: bool) -> Result<(), Failure> {
    match element {
        None => {
            let mut rows = Vec::new();
            for name in elements(client)? {
                let class = client.read_text(&format!("{name}.class"), "")?;
                rows.push((name, class.trim_end().to_string()));
            }
            if json {
                return value_out(&rows.iter().map(|(n, c)| json!({ "name": n, "class": c })).collect());
            }
            Ok(write_out(None, &columns(&rows))?)
        }
        Some("workers") if !elements(client)?.iter().any(|e| e == "workers") => list_workers(client, json),
        Some(e) => {
            let mut rows = handlers(client, Some(e).filter(|e| *e != "/"))?;
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            if json {
                let mut known = Kinds::new();
                let mut all = Vec::new();
                for (name, flags) in rows {
                    let path = if e == "/" { name.clone() } else { format!("{e}.{name}") };
                    let spec = known.declared(client, &path)?;
                    let kind = spec.filter(|h| h.readable()).map(|h| h.kind.word());
                    all.push(json!({
                        "name": name, "flags": flags.to_string(), "value": kind, "unit": spec.map(|h| h.unit),
                        "doc": spec.map(|h| h.doc),
                    }));
                }
                return value_out(&all.into());
            }
            let rows: Vec<_> = rows.into_iter().map(|(n, f)| (n, words(f))).collect();
            Ok(write_out(None, &columns(&rows))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_between_two_readings() {
        let line = |text: &str| Worker::parse(text).map(|w| (w.number, w.tasks, w));
        let (first, second) = (line("1\t2.5\t10.0\t3"), line("1\t3.0\t11.0\t3"));
        let (Some((1, 3, first)), Some((1, 3, second))) = (first, second) else { panic!("not parsed") };
        assert_eq!(second.load(Some(&first)), 0.5);
        assert_eq!(first.load(None), 0.25);
        assert_eq!(first.load(Some(&second)), 0.25, "a hot swap came between");
        assert!(line("1\tx\t10.0\t3").is_none() && line("").is_none());
    }
}
