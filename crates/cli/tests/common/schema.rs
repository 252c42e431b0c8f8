// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks values against JSON Schema (draft 2020-12), as far as the OpenAPI document uses it. A keyword that is not known
//! here is an error, so that no schema is weaker than it looks.
#![allow(clippy::unwrap_used, dead_code)]

use serde_json::Value;

/// Whether a value has a type of JSON Schema.
fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other} is unknown"),
    }
}

/// Returns what is wrong with a value, each with its place in the value.
pub fn errors(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    check(document, schema, value, "", &mut out);
    out
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let good = match keyword.as_str() {
            "description" => true,
            "$ref" => {
                let place = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                let target = document.pointer(place).unwrap_or_else(|| panic!("{place} leads nowhere"));
                check(document, target, value, at, out);
                true
            }
            "type" => match wanted {
                Value::Array(any) => any.iter().any(|t| has_type(value, t.as_str().unwrap())),
                one => has_type(value, one.as_str().unwrap()),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|o| {
                wanted.as_array().unwrap().iter().all(|name| o.contains_key(name.as_str().unwrap()))
            }),
            "properties" => {
                for (name, inner) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(document, inner, value, &format!("{at}/{name}"), out);
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false));
                value.as_object().is_none_or(|o| o.keys().all(|k| schema["properties"].get(k).is_some()))
            }
            "items" => {
                for (i, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, wanted, value, &format!("{at}/{i}"), out);
                }
                true
            }
            other => panic!("the keyword {other} is unknown"),
        };
        if !good {
            out.push(format!("{at}: {keyword} {wanted}"));
        }
    }
}
