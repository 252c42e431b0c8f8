// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics of a router in the OpenMetrics text format, which Prometheus reads.

mod family;

use crate::ctl::kinds;
use crate::observe::{Handlers, Reading, devices};
use castanet_spec::{HandlerFlags, HandlerSpec, ValueKind};
use family::{Families, Type, Value, labels};
use serde_json::Value as Json;
use std::collections::HashMap;

/// Reads all metrics of a router.
///
/// # Errors
/// When the router cannot be reached.
pub fn text<H: Handlers>(router: &mut H) -> Result<String, H::Error> {
    let mut out = Families::default();
    let elements = router.elements()?;
    let reading = Reading::of(router, &devices(&elements))?;
    of_reading(&mut out, &reading);
    // The family of each handler, found once a class.
    let mut families: HashMap<*const HandlerSpec, Option<usize>> = HashMap::new();
    for element in &elements {
        let Some(spec) = element.spec else { continue };
        let labels = labels(&[("element", &element.name), ("class", &element.class)]);
        for handler in spec.all_handlers() {
            let family = *families.entry(handler).or_insert_with(|| {
                let metric = Metric::of(handler)?;
                Some(out.family(metric.kind, &metric.name, &metric.unit, handler.doc))
            });
            let Some(family) = family else { continue };
            let Some(text) = router.try_read(&format!("{}.{}", element.name, handler.name))? else {
                continue;
            };
            let value = match kinds::json(&text, Some(handler.kind)) {
                Json::Number(n) => n.as_u64().map(Value::Whole).or_else(|| n.as_f64().map(Value::Real)),
                Json::Bool(b) => Some(Value::Whole(b.into())),
                _ => None,
            };
            if let Some(value) = value {
                out.push(family, &labels, value);
            }
        }
    }
    Ok(out.text())
}

/// Adds the metrics that are not those of single handlers.
fn of_reading(out: &mut Families, r: &Reading) {
    let mut count = |name: &str, doc: &str, of: &[(&str, &str)], n: u64| {
        let family = out.family(Type::Counter, name, "packets", doc);
        out.push(family, &labels(of), Value::Whole(n));
    };
    for d in r.drops(None) {
        let labels = [("element", d.element.as_str()), ("class", &d.class), ("reason", &d.reason)];
        count("dropped", "Packets that elements dropped, by reason.", &labels, d.packets);
    }
    for a in r.accounts.iter().filter(|a| a.element != "-") {
        let labels = [("element", a.element.as_str()), ("class", a.class.as_str())];
        for (name, doc, n) in [
            ("entered", "Packets that entered the router.", a.entered),
            ("made", "Packets that were made from others.", a.made),
            ("left", "Packets that left the router.", a.left),
        ] {
            if n > 0 {
                count(name, doc, &labels, n);
            }
        }
    }
    let mut gauge = |name: &str, unit: &str, doc: &str, of: &[(&str, &str)], n: u64| {
        let family = out.family(Type::Gauge, name, unit, doc);
        out.push(family, &labels(of), Value::Whole(n));
    };
    for a in &r.accounts {
        let labels = [("element", a.element.as_str()), ("class", a.class.as_str())];
        gauge(
            "held",
            "packets",
            "Packets that elements hold; - stands for the connections.",
            &labels,
            a.held,
        );
    }
    for q in &r.queues {
        let labels = [("element", q.element.as_str())];
        gauge("queue_length", "packets", "Packets in queues.", &labels, q.length);
        gauge("queue_capacity", "packets", "The largest number of packets in queues.", &labels, q.capacity);
    }
    for w in &r.workers {
        let number = w.number.to_string();
        gauge("worker_tasks", "", "Tasks of workers.", &[("worker", &number)], w.tasks.into());
    }
    for w in &r.workers {
        let number = w.number.to_string();
        let awake = w.awake.min(w.exists);
        let polled = w.polled.min(awake);
        for (state, seconds) in [("idle", w.exists - awake), ("poll", polled), ("work", awake - polled)] {
            let of = labels(&[("worker", &number), ("state", state)]);
            let doc = "Time of workers, by what they did.";
            let family = out.family(Type::Counter, "worker", "seconds", doc);
            out.push(family, &of, Value::Real(seconds.max(0.0)));
        }
    }
}

/// How a handler is shown as a metric.
#[derive(Debug, PartialEq, Eq)]
struct Metric {
    kind: Type,
    /// The name without the unit.
    name: String,
    /// The unit; empty if there is none.
    unit: String,
}

impl Metric {
    /// Returns none if the value of the handler is no number.
    fn of(handler: &HandlerSpec) -> Option<Metric> {
        let closed = HandlerFlags::PARAMETERS | HandlerFlags::RAW | HandlerFlags::PRIVATE;
        if !handler.readable() || handler.flags.intersects(closed) {
            return None;
        }
        let per_second = |unit: &str| format!("{}_per_second", unit.strip_suffix("/s").unwrap_or(unit));
        let unit = match (handler.kind, handler.unit) {
            // OpenMetrics has one name for all metrics of a family. Handlers named `count` are counters in some classes
            // and gauges in others, so counters always have a unit.
            (ValueKind::Counter, "") => "events".to_string(),
            (ValueKind::Time, _) => "seconds".to_string(),
            // A bandwidth, whose unit is in its text.
            (ValueKind::Rate, "") => per_second("bytes"),
            (ValueKind::Rate, unit) => per_second(unit),
            (ValueKind::Gauge, unit) if unit.ends_with("/s") => per_second(unit),
            (ValueKind::Counter | ValueKind::Gauge, unit) => unit.to_string(),
            (ValueKind::Flag, _) => String::new(),
            (ValueKind::Address | ValueKind::Table | ValueKind::Text, _) => return None,
        };
        let kind = if handler.kind == ValueKind::Counter { Type::Counter } else { Type::Gauge };
        Some(Metric { kind, name: format!("handler_{}", handler.name), unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_classes::Registry;
    use castanet_lang::ClassNames as _;
    use castanet_runtime::Classes as _;
    use std::collections::BTreeMap;

    #[test]
    fn no_name_stands_for_two_types() {
        let registry = Registry::new();
        let mut types: BTreeMap<String, Type> = BTreeMap::new();
        let mut number = 0;
        for name in registry.names() {
            for handler in registry.get(name).into_iter().flat_map(|d| d.spec.all_handlers()) {
                let Some(m) = Metric::of(handler) else { continue };
                number += 1;
                let name = format!("{}_{}", m.name, m.unit);
                let before = types.insert(name.clone(), m.kind);
                assert!(before.is_none_or(|t| t == m.kind), "{name}");
            }
        }
        assert!(number > 200, "{number}");
    }

    #[test]
    fn units_are_words() {
        let spec = |kind, unit, flags| HandlerSpec { unit, ..HandlerSpec::new("x", flags, "", kind) };
        let read = |kind, unit| Metric::of(&spec(kind, unit, HandlerFlags::READ)).map(|m| (m.kind, m.unit));
        let gauge = |unit: &str| Some((Type::Gauge, unit.to_string()));
        assert_eq!(read(ValueKind::Counter, "packets"), Some((Type::Counter, "packets".into())));
        assert_eq!(read(ValueKind::Counter, ""), Some((Type::Counter, "events".into())));
        assert_eq!(read(ValueKind::Rate, "bits/s"), gauge("bits_per_second"));
        assert_eq!(read(ValueKind::Rate, ""), gauge("bytes_per_second"));
        assert_eq!(read(ValueKind::Gauge, "bytes/s"), gauge("bytes_per_second"));
        assert_eq!(read(ValueKind::Time, ""), gauge("seconds"));
        assert_eq!(read(ValueKind::Flag, ""), gauge(""));
        assert_eq!(read(ValueKind::Text, ""), None);
        let closed = [
            HandlerFlags::WRITE,
            HandlerFlags::READ | HandlerFlags::PARAMETERS,
            HandlerFlags::READ | HandlerFlags::PRIVATE,
        ];
        for flags in closed {
            assert_eq!(Metric::of(&spec(ValueKind::Counter, "", flags)), None);
        }
    }
}
