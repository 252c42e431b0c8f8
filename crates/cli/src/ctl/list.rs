// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS list`: elements and handlers of a running router.

use super::{Failure, value_out};
use crate::load::write_out;
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_spec::origin::{OPENS_FILES, RECONFIGURES};
use serde_json::json;

/// Reads the names of all elements.
pub fn elements(client: &mut Client) -> Result<Vec<String>, ClientError> {
    Ok(client.read_text("list", "")?.lines().skip(1).map(ToString::to_string).collect())
}

/// Reads the handlers of an element, or the global handlers for `None`. Returns the name and the flags of
/// each.
pub fn handlers(client: &mut Client, element: Option<&str>) -> Result<Vec<(String, String)>, ClientError> {
    let listing = match element {
        Some(e) => client.read_text(&format!("{e}.handlers"), "")?,
        None => client.read_text("handlers", "")?,
    };
    let line = |l: &str| l.split_once('\t').map(|(n, f)| (n.to_string(), f.to_string()));
    // Private handlers cannot be called from outside.
    Ok(listing.lines().filter_map(line).filter(|h| !h.1.contains('p')).collect())
}

/// Describes the flags of a handler in words.
fn words(flags: &str) -> String {
    let has = |c| flags.contains(c);
    let mut out: Vec<&str> = Vec::new();
    if has('r') {
        out.push(if has('+') || has('%') { "read with parameters" } else { "read" });
    }
    if has('w') {
        out.push(if has('b') { "write (button)" } else { "write" });
    }
    if has(RECONFIGURES) || has(OPENS_FILES) {
        out.push("restricted");
    }
    if has('D') {
        out.push("deprecated");
    }
    out.join(", ")
}

/// Formats rows as two aligned columns.
fn columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|r| r.0.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(a, b)| format!("{a:width$}  {b}").trim_end().to_string() + "\n").collect()
}

/// Prints the elements, or the handlers of one element.
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
        Some(e) => {
            let mut rows = handlers(client, Some(e).filter(|e| *e != "/"))?;
            rows.sort();
            if json {
                return value_out(&rows.iter().map(|(n, f)| json!({ "name": n, "flags": f })).collect());
            }
            let rows: Vec<_> = rows.into_iter().map(|(n, f)| (n, words(&f))).collect();
            Ok(write_out(None, &columns(&rows))?)
        }
    }
}
