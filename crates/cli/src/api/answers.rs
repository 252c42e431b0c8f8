// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers of the API about the router, its elements and their handlers.

use super::problem::Problem;
use super::routes::Call;
use super::{Api, configurations, graph};
use crate::ctl::kinds::json as typed;
use crate::observe::{Handlers, Reading, devices, workers};
use castanet_runtime::global_handlers::global;
use castanet_runtime::handlers::provided;
use castanet_spec::{ClassSpec, HandlerFlags, HandlerSpec};
use serde_json::{Value, json};

/// Returns the declaration of a handler; `spec` is the class of its element, if it has one.
fn declared(
    element: Option<&str>,
    spec: Option<&'static ClassSpec>,
    handler: &str,
) -> Option<&'static HandlerSpec> {
    match element {
        None => global(true).find(|h| h.name == handler),
        Some(_) => {
            spec.and_then(|s| s.handler(handler)).or_else(|| provided(true, true).find(|h| h.name == handler))
        }
    }
}

/// Returns the handlers of an element, or the global ones, from a listing of their names and flags.
fn handlers(listing: &str, element: Option<&str>, spec: Option<&'static ClassSpec>) -> Vec<Value> {
    let parsed = |l: &str| l.split_once('\t').map(|(n, f)| (n.to_string(), HandlerFlags::parse(f)));
    // Private handlers cannot be called from outside.
    let mut all: Vec<_> =
        listing.lines().filter_map(parsed).filter(|h| !h.1.contains(HandlerFlags::PRIVATE)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let one = |(name, flags): (String, HandlerFlags)| {
        let declared = declared(element, spec, &name);
        let kind = declared.filter(|h| h.readable()).map(|h| h.kind.word());
        json!({
            "name": name,
            "readable": flags.is_readable(),
            "writable": flags.is_writable(),
            "button": flags.contains(HandlerFlags::BUTTON),
            "checkbox": flags.contains(HandlerFlags::CHECKBOX),
            "parameters": flags.contains(HandlerFlags::PARAMETERS),
            "expensive": flags.contains(HandlerFlags::EXPENSIVE),
            "uncommon": flags.contains(HandlerFlags::UNCOMMON),
            "kind": kind,
            "unit": declared.map(|h| h.unit).filter(|u| !u.is_empty()),
            "doc": declared.map(|h| h.doc).filter(|d| !d.is_empty()),
        })
    };
    all.into_iter().map(one).collect()
}

/// `GET /api/router`
pub fn router(api: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let listing = call.router.read("handlers")?;
    let names = call.router.read("list")?;
    Ok(json!({
        "program": "castanet",
        "version": env!("CARGO_PKG_VERSION"),
        "click": call.router.read("version")?,
        "elements": names.lines().skip(1).count(),
        "reconfigurable": listing.lines().any(|l| l.starts_with("hotconfig\t")),
        "writable": api.writable,
        "authorised": call.may_write,
    }))
}

/// `GET /api/elements`
pub fn elements(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let graph = call.router.graph()?;
    let all = graph.flat.elements.iter();
    let all = all.map(|e| json!({ "name": e.name, "class": e.class.as_str(), "configuration": e.config }));
    Ok(json!({ "elements": all.collect::<Vec<_>>() }))
}

/// `GET /api/elements/{element}`
pub fn element(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let name = call.parameter("element")?;
    let mut read = |handler: &str| call.router.read(&format!("{name}.{handler}"));
    let class = read("class")?.trim_end().to_string();
    let (listing, ports, config) = (read("handlers")?, read("ports")?, read("config")?);
    let spec = call.router.spec(&name, &class);
    Ok(json!({
        "name": name,
        "class": class,
        "configuration": config.trim_end_matches('\n'),
        "ports": ports,
        "doc": spec.and_then(|s| s.doc.lines().next()).map(str::trim).filter(|d| !d.is_empty()),
        "handlers": handlers(&listing, Some(&name), spec),
    }))
}

/// `GET /api/handlers`
pub fn global_handlers(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let listing = call.router.read("handlers")?;
    Ok(json!({ "handlers": handlers(&listing, None, None) }))
}

/// The full name of the handler that a request names.
fn named(call: &Call<'_>) -> Result<(Option<String>, String), Problem> {
    let element = call.parameter("element").ok();
    let handler = call.parameter("handler")?;
    // A dot would move the border between the element and the handler.
    if handler.contains('.') || element.as_deref().is_some_and(str::is_empty) {
        return Err(Problem::new(404, format!("no handler named '{handler}'")));
    }
    Ok((element, handler))
}

fn full(element: Option<&str>, handler: &str) -> String {
    element.map_or_else(|| handler.to_string(), |e| format!("{e}.{handler}"))
}

/// `GET /api/elements/{element}/handlers/{handler}` and `GET /api/handlers/{handler}`
pub fn read(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let (element, handler) = named(call)?;
    let path = full(element.as_deref(), &handler);
    let parameters = call.query("parameters").next().unwrap_or_default().to_string();
    let text = call.router.read_with(&path, &parameters)?;
    let spec = match &element {
        Some(e) => {
            let class = call.router.try_read(&format!("{e}.class"))?.unwrap_or_default();
            call.router.spec(e, class.trim())
        }
        None => None,
    };
    let declared = declared(element.as_deref(), spec, &handler);
    let kind = declared.filter(|h| h.readable()).map(|h| h.kind);
    Ok(json!({ "handler": path, "value": typed(&text, kind), "text": text }))
}

/// `PUT /api/elements/{element}/handlers/{handler}` and `PUT /api/handlers/{handler}`
pub fn write(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let (element, handler) = named(call)?;
    let path = full(element.as_deref(), &handler);
    let value = call.text("value")?.to_string();
    let answer = call.router.write(&path, &value)?;
    Ok(json!({ "handler": path, "answer": answer.trim_end() }))
}

/// Reads the router once. There is no earlier reading, so there are no rates, and loads are those since the start.
fn reading(call: &mut Call<'_>) -> Result<Value, Problem> {
    let elements = call.router.elements()?;
    Ok(Reading::of(call.router, &devices(&elements))?.json(None))
}

/// `GET /api/drops`
pub fn drops(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    Ok(json!({ "drops": reading(call)?["drops"] }))
}

/// `GET /api/queues`
pub fn queues(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let all = reading(call)?;
    Ok(json!({ "queues": all["queues"], "held": all["held"] }))
}

/// `GET /api/workers`
pub fn loads(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    Ok(json!({ "workers": workers::json(&workers::read(call.router)?, None) }))
}

/// `GET /api/graph`
pub fn graph(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let folded: Vec<String> = call.query("fold").map(str::to_string).collect();
    Ok(graph::json(&call.router.graph()?, &folded))
}

/// `GET /api/configuration`
pub fn configuration(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let (text, flat) = (call.router.read("config")?, call.router.read("flatconfig")?);
    Ok(json!({ "configuration": text, "flat": flat }))
}

/// `POST /api/check`
pub fn check(api: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    Ok(api.context.check(call.text("configuration")?))
}

/// `POST /api/plan`
pub fn plan(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let text = call.text("configuration")?.to_string();
    configurations::plan(call.router, &text)
}

/// `POST /api/swap`
pub fn swap(_: &Api, call: &mut Call<'_>) -> Result<Value, Problem> {
    let text = call.text("configuration")?.to_string();
    configurations::swap(call.router, &text)
}
