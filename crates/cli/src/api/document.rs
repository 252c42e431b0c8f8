// SPDX-License-Identifier: MIT OR Apache-2.0
//! The OpenAPI document: the routes, and the schemas of what is sent.

use super::problem::Problem;
use super::routes::{Answer, ROUTES, Route};
use serde_json::{Map, Value, json};

/// The schemas, by name.
const SCHEMAS: &str = include_str!("schemas.json");

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// Returns the answer of a route when all is well: its media type and its schema.
fn success(answer: &Answer) -> (&'static str, Value) {
    match answer {
        Answer::Json(schema, _) => ("application/json", reference(schema)),
        Answer::Document => ("application/json", json!({ "type": "object" })),
        Answer::Events => ("text/event-stream", json!({ "type": "string" })),
        Answer::Metrics => ("application/openmetrics-text", json!({ "type": "string" })),
        Answer::File(kind, _) => (kind.split(';').next().unwrap_or(kind), json!({ "type": "string" })),
    }
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route.query.iter().map(|(name, repeated, doc)| {
        let text = json!({ "type": "string" });
        let schema = if *repeated { json!({ "type": "array", "items": text }) } else { text };
        json!({ "name": name, "in": "query", "description": doc, "schema": schema })
    });
    let (kind, schema) = success(&route.answer);
    let failure = if route.path.starts_with("/api/") {
        json!({ "application/json": { "schema": reference("Problem") } })
    } else {
        json!({ "text/plain": { "schema": { "type": "string" } } })
    };
    let mut out = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {
            "200": { "description": "Done.", "content": { kind: { "schema": schema } } },
            "default": { "description": "Why the request was not answered.", "content": failure },
        },
    });
    if let (Some(body), Some(out)) = (route.body, out.as_object_mut()) {
        let content = json!({ "application/json": { "schema": reference(body) } });
        out.insert("requestBody".into(), json!({ "required": true, "content": content }));
    }
    if let (true, Some(out)) = (route.guarded, out.as_object_mut()) {
        out.insert("security".into(), json!([{ "token": [] }]));
    }
    out
}

/// Returns the OpenAPI document.
///
/// # Errors
/// When the schemas are not JSON; a test would notice that.
pub fn document() -> Result<Value, Problem> {
    let schemas: Value = serde_json::from_str(SCHEMAS).map_err(|e| Problem::new(500, e.to_string()))?;
    let mut paths = Map::new();
    for route in ROUTES {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.method.to_ascii_lowercase(), operation(route));
        }
    }
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "A Castanet router",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Observes a router and changes it. Changes need the token that 'castanet run --http-write' prints.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    }))
}
