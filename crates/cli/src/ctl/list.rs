// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS list`: elements and handlers of a running router.

use super::kinds::Kinds;
use super::{Failure, value_out};
use crate::load::write_out;
use crate::observe::{columns as aligned, workers};
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_spec::HandlerFlags;
use serde_json::json;
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

/// Prints the workers with their load, measured for [`MEASURED`].
fn list_workers(client: &mut Client, json: bool) -> Result<(), Failure> {
    let before = workers::read(client)?;
    std::thread::sleep(MEASURED);
    let now = workers::read(client)?;
    if json {
        return value_out(&workers::json(&now, Some(&before)));
    }
    Ok(write_out(None, &aligned(&workers::rows(&now, Some(&before)), 0))?)
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
