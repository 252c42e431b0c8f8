// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of packets: `/api/traces`.
//!
//! A trace is kept by the router. It ends by itself if nobody reads it for 30 seconds.

use super::Api;
use super::problem::Problem;
use super::routes::Call;
use crate::observe::Handlers as _;
use crate::trace::router::{Lines, trace_name};
use crate::trace::step::{Packets, Step};
use crate::trace::text::{self, Classes};
use serde_json::{Value, json};

/// The maximum number of packets of a trace. All of them are sent with each reading.
const PACKETS: u64 = 100;
/// The status of a call that the router refused: it has no trace of this name.
const REFUSED: u16 = 422;
/// The number of packets if the request does not say how many.
const DEFAULT: u64 = 10;

/// `POST /api/traces`
pub fn begin(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let filter = match call.body.get("filter") {
        None => "",
        Some(_) => call.text("filter")?,
    };
    let packets = match call.body.get("packets") {
        None => Some(DEFAULT),
        Some(n) => n.as_u64().filter(|n| (1..=PACKETS).contains(n)),
    };
    let wrong = || Problem::new(400, format!("'packets': expected a number from 1 to {PACKETS}"));
    let name = trace_name();
    let request = format!("{name} {} {filter}", packets.ok_or_else(wrong)?);
    call.router.write("trace", &request)?;
    Ok(json!({ "trace": name }))
}

/// The name of the trace that a request is about.
fn named(call: &Call<'_>) -> Result<String, Problem> {
    let name = call.parameter("trace")?;
    let known = !name.is_empty() && name.bytes().all(|b| b.is_ascii_hexdigit());
    if known { Ok(name) } else { Err(missing(&name)) }
}

fn missing(name: &str) -> Problem {
    Problem::new(404, format!("no trace '{name}'; a trace ends when nobody reads it for 30 seconds"))
}

/// `GET /api/traces/{trace}`
pub fn read(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let name = named(call)?;
    let read = call.router.read_with("trace", &format!("{name} 0"));
    let lines = Lines::parse(&read.map_err(|e| if e.status == REFUSED { missing(&name) } else { e })?);
    let mut packets = Packets::default();
    let mut all: Vec<(Vec<Step>, bool)> = Vec::new();
    for step in lines.lines.iter().filter_map(|l| Step::parse(l)) {
        all.extend(packets.add(step).map(|steps| (steps, true)));
    }
    all.extend(packets.rest().map(|steps| (steps, false)));
    all.sort_by_key(|(steps, _)| steps.first().map(|s| s.packet));
    let mut classes = Classes::new();
    for step in all.iter().flat_map(|p| &p.0) {
        if !classes.contains_key(&step.element) {
            let class = call.router.try_read(&format!("{}.class", step.element))?.unwrap_or_default();
            classes.insert(step.element.clone(), class.trim().to_string());
        }
    }
    let progress = lines.progress();
    Ok(json!({
        "chosen": progress.chosen,
        "wanted": progress.wanted,
        "over": progress.is_over(),
        "lost": lines.lost,
        "packets": all.iter().map(|(steps, whole)| text::json(steps, &classes, *whole)).collect::<Vec<_>>(),
    }))
}

/// `DELETE /api/traces/{trace}`
pub fn end(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let name = named(call)?;
    call.router.write("trace", &format!("{name} end"))?;
    Ok(json!({}))
}
