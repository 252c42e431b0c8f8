// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS watch`: prints the values of handlers and their rates repeatedly.

use super::kinds::{self, Kinds};
use super::list::{elements, handlers};
use super::{Failure, seconds, value_out};
use crate::load::write_out;
use crate::observe::rate_text;
use crate::requests::matcher;
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_spec::ValueKind;
use clap::Args;
use serde_json::{Map, json};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// `castanet ctl ADDRESS watch`.
#[derive(Args)]
pub struct Watch {
    /// The handlers; the element may be a glob.
    #[arg(required = true, value_name = "HANDLER")]
    pub handlers: Vec<String>,
    /// Seconds between two readings.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// Number of readings; default: unlimited.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}

/// The values of one reading.
struct Reading<'a> {
    at: Instant,
    values: Vec<String>,
    /// The kinds of the values; `None` for an unknown kind.
    kinds: &'a [Option<ValueKind>],
}

/// Returns the names of the handlers that match the patterns.
fn expand(client: &mut Client, patterns: &[String]) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for p in patterns {
        let Some((element, handler)) = p.split_once('.').filter(|e| e.0.contains(['*', '?', '['])) else {
            out.push(p.clone());
            continue;
        };
        let before = out.len();
        let matches = matcher(element);
        for e in elements(client)?.into_iter().filter(|e| matches(e)) {
            let all = handlers(client, Some(&e))?;
            if all.iter().any(|h| h.0 == handler && h.1.is_readable()) {
                out.push(format!("{e}.{handler}"));
            }
        }
        if out.len() == before {
            return Err(Failure::Here(format!("no element that matches '{p}' has this read handler")));
        }
    }
    Ok(out)
}

fn look<'a>(
    client: &mut Client,
    names: &[String],
    kinds: &'a [Option<ValueKind>],
) -> Result<Reading<'a>, ClientError> {
    let mut values = Vec::new();
    for n in names {
        values.push(client.read_text(n, "")?.trim_end().to_string());
    }
    Ok(Reading { at: Instant::now(), values, kinds })
}

/// Returns the growth of a count per second. `None` if the value is not a count, or was reset. A whole number
/// of unknown kind is treated as a count.
fn rate(before: &Reading<'_>, now: &Reading<'_>, i: usize) -> Option<f64> {
    if now.kinds.get(i).copied().flatten().is_some_and(|k| k != ValueKind::Counter) {
        return None;
    }
    let count = |l: &Reading<'_>| l.values.get(i).and_then(|v| v.parse::<u64>().ok());
    let grown = count(now)?.checked_sub(count(before)?)?;
    let time = now.at.saturating_duration_since(before.at).as_secs_f64();
    (time > 0.0).then(|| grown as f64 / time)
}

/// Largest number of characters of a value that a row shows.
const MOST: usize = 40;

/// Returns at most `most` characters of the first line of a value. Three dots follow if the value has more text.
fn short(value: &str, most: usize) -> String {
    let line = value.lines().next().unwrap_or_default();
    let more = line.chars().nth(most).is_some() || value.lines().nth(1).is_some();
    let line: String = line.chars().take(most).filter(|c| !c.is_control()).collect();
    if more { line + "..." } else { line }
}

/// Formats one line per handler: name, value, rate. Values are shortened, so that one long value does not make the
/// lines wider than `columns`.
fn rows(names: &[String], before: Option<&Reading<'_>>, now: &Reading<'_>, columns: usize) -> Vec<String> {
    let width = |all: &[String]| all.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let n = width(names);
    // Two blanks before the value, two before the rate, ten for the rate, three for dots.
    let room = columns.saturating_sub(n.saturating_add(17)).clamp(8, MOST);
    let values: Vec<String> = now.values.iter().map(|v| short(v, room)).collect();
    let v = width(&values);
    let row = |(i, (name, value)): (usize, (&String, &String))| {
        let rate = before.and_then(|b| rate(b, now, i)).map(rate_text).unwrap_or_default();
        format!("{name:n$}  {value:>v$}  {rate:>10}").trim_end().to_string()
    };
    names.iter().zip(&values).enumerate().map(row).collect()
}

fn json_line(
    names: &[String],
    before: Option<&Reading<'_>>,
    now: &Reading<'_>,
    start: Instant,
) -> serde_json::Value {
    let (mut values, mut rates) = (Map::new(), Map::new());
    for (i, (name, value)) in names.iter().zip(&now.values).enumerate() {
        values.insert(name.clone(), kinds::json(value, now.kinds.get(i).copied().flatten()));
        if let Some(r) = before.and_then(|b| rate(b, now, i)) {
            rates.insert(name.clone(), json!(r));
        }
    }
    let seconds = now.at.saturating_duration_since(start).as_secs_f64();
    json!({ "seconds": seconds, "values": values, "rates": rates })
}

/// Cuts rows to the size of the terminal (columns, lines). Longer rows would wrap, and more rows would
/// scroll. In both cases the cursor could not return to the first row. The last line of the terminal is left
/// for the cursor.
fn cut(mut rows: Vec<String>, (width, height): (usize, usize)) -> Vec<String> {
    let most = height.saturating_sub(1).max(1);
    if rows.len() > most {
        let more = rows.len() - (most - 1);
        rows.truncate(most - 1);
        rows.push(format!("... {more} more"));
    }
    for row in &mut rows {
        if let Some((end, _)) = row.char_indices().nth(width) {
            row.truncate(end);
        }
    }
    rows
}

/// The size of the terminal on standard output, columns and lines; `None` if it is unknown.
fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Reads and prints repeatedly. On a terminal the table is updated in place.
pub fn watch(client: &mut Client, w: &Watch, json: bool) -> Result<(), Failure> {
    let names = expand(client, &w.handlers)?;
    let terminal = std::io::stdout().is_terminal() && !json;
    let start = Instant::now();
    let mut known = Kinds::new();
    let kinds: Vec<_> = names.iter().map(|n| known.of(client, n)).collect::<Result<_, _>>()?;
    let mut before: Option<Reading<'_>> = None;
    // Number of table lines that are on the terminal.
    let mut shown = 0;
    for n in 0..w.count.unwrap_or(u64::MAX) {
        if n > 0 {
            // Reading `n` is due `n` intervals after the start. If it were due one interval after the previous
            // reading, delays would add up.
            let factor = u32::try_from(n).unwrap_or(u32::MAX);
            let due = w.interval.checked_mul(factor).and_then(|d| start.checked_add(d));
            std::thread::sleep(due.map_or(w.interval, |d| d.saturating_duration_since(Instant::now())));
        }
        let now = look(client, &names, &kinds)?;
        if json {
            value_out(&json_line(&names, before.as_ref(), &now, start))?;
        } else {
            let size = terminal_size().filter(|_| terminal);
            let columns = size.map_or(usize::MAX, |s| s.0);
            let mut rows = rows(&names, before.as_ref(), &now, columns);
            let mut text = String::new();
            if terminal {
                if let Some(size) = size {
                    rows = cut(rows, size);
                }
                if shown > 0 {
                    text += &format!("\x1b[{shown}A");
                }
            }
            let clear = if terminal { "\x1b[K" } else { "" };
            text.extend(rows.iter().map(|r| format!("{clear}{r}\n")));
            if terminal {
                // Erase the rest of an earlier table that was longer, or that was drawn on a larger terminal.
                text += "\x1b[J";
            }
            shown = rows.len();
            write_out(None, &text)?;
        }
        before = Some(now);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_cut_to_the_terminal() {
        let rows = || ["a.count  1", "b.count  22", "c.count  333"].map(String::from).to_vec();
        assert_eq!(cut(rows(), (80, 25)), rows());
        assert_eq!(cut(rows(), (10, 4)), ["a.count  1", "b.count  2", "c.count  3"]);
        assert_eq!(cut(rows(), (80, 3)), ["a.count  1", "... 2 more"]);
        assert_eq!(cut(rows(), (5, 1)), ["... 3"]);
        assert_eq!(cut(vec!["äöü".into()], (2, 25)), ["äö"]);
    }

    #[test]
    fn tables() {
        let start = Instant::now();
        let kinds = [None, Some(ValueKind::Rate), Some(ValueKind::Text)];
        let look = |ms, values: &[&str]| Reading {
            at: start + Duration::from_millis(ms),
            values: values.iter().map(ToString::to_string).collect(),
            kinds: &kinds,
        };
        let names = ["c.count", "c.rate", "longer/c.config"].map(ToString::to_string);
        let (a, b) = (look(0, &["100", "7.5", "a, b\nc"]), look(500, &["1700100", "9", ""]));
        assert_eq!(
            rows(&names, None, &a, 80),
            ["c.count              100", "c.rate               7.5", "longer/c.config  a, b..."]
        );
        assert_eq!(
            rows(&names, Some(&a), &b, 80),
            ["c.count          1700100    3.40 M/s", "c.rate                 9", "longer/c.config"]
        );
        let long = look(500, &["1700100", "9", "a value that is longer than the terminal is wide"]);
        assert_eq!(
            rows(&names, Some(&a), &long, 50),
            [
                "c.count                        1700100    3.40 M/s",
                "c.rate                               9",
                "longer/c.config  a value that is lo..."
            ]
        );
        assert_eq!(rate(&b, &a, 0), None, "it was reset");
        let gauges = [Some(ValueKind::Gauge); 3];
        let (a2, b2) =
            (Reading { kinds: &gauges, ..look(0, &["1"]) }, Reading { kinds: &gauges, ..look(500, &["2"]) });
        assert_eq!(rate(&a2, &b2, 0), None, "a gauge has no rate");
        let line = json_line(&names, Some(&a), &b, start).to_string();
        let want = r#"{"rates":{"c.count":3400000.0},"seconds":0.5,"values":{"c.count":1700100,"c.rate":9.0,"longer/c.config":""}}"#;
        assert_eq!(line, want);
    }
}
