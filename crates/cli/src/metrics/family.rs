// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics in families, which have a name, a type, a unit and a help text, and their text in the OpenMetrics format.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It only grows, until it is reset.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(u64),
    Real(f64),
}

/// The help text of a family whose metrics have different ones.
const SEVERAL: &str = "The manual of the class describes this handler.";

/// Metrics with the same name.
#[derive(Debug)]
struct Family {
    kind: Type,
    unit: String,
    help: String,
    metrics: Vec<(Labels, Value)>,
}

/// The labels of a metric. The metrics of an element share them.
pub type Labels = Arc<Vec<(String, String)>>;

/// Makes labels.
pub fn labels(labels: &[(&str, &str)]) -> Labels {
    Arc::new(labels.iter().map(|l| (l.0.to_string(), l.1.to_string())).collect())
}

/// Families of metrics.
#[derive(Debug, Default)]
pub struct Families {
    families: Vec<Family>,
    /// The number of each family, by name without the unit, and unit.
    numbers: BTreeMap<(String, String), usize>,
}

/// Replaces characters that names must not have.
fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

impl Families {
    /// Returns the number of the family of a metric. A family has the help text of its metrics, if they all have the same. A
    /// metric whose type differs from that of the family gets a family of its own, named after the type.
    pub fn family(&mut self, kind: Type, name: &str, unit: &str, help: &str) -> usize {
        let (mut name, unit) = (word(name), word(unit));
        let known = self.numbers.get(&(name.clone(), unit.clone())).and_then(|&n| self.families.get(n));
        if known.is_some_and(|f| f.kind != kind) {
            name += if kind == Type::Counter { "_counter" } else { "_gauge" };
        }
        // The library escapes values of labels, but not help texts.
        let help = help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        let families = &mut self.families;
        let number = *self.numbers.entry((name, unit.clone())).or_insert_with(|| {
            families.push(Family { kind, unit, help: help.clone(), metrics: Vec::new() });
            families.len() - 1
        });
        if let Some(family) = families.get_mut(number).filter(|f| f.help != help) {
            family.help = SEVERAL.to_string();
        }
        number
    }

    /// Adds a metric to a family.
    pub fn push(&mut self, family: usize, labels: &Labels, value: Value) {
        if let Some(family) = self.families.get_mut(family) {
            family.metrics.push((labels.clone(), value));
        }
    }

    /// Returns the metrics in the OpenMetrics text format.
    pub fn text(self) -> String {
        let mut registry = Registry::with_prefix("castanet");
        registry.register_collector(Box::new(self));
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &registry);
        out
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for ((name, _), &number) in &self.numbers {
            let Some(family) = self.families.get(number).filter(|f| !f.metrics.is_empty()) else { continue };
            let unit = (!family.unit.is_empty()).then(|| Unit::Other(family.unit.clone()));
            let kind = match family.kind {
                Type::Counter => MetricType::Counter,
                Type::Gauge => MetricType::Gauge,
            };
            let mut metrics = encoder.encode_descriptor(name, &family.help, unit.as_ref(), kind)?;
            for (labels, value) in &family.metrics {
                let one = metrics.encode_family(labels.as_ref())?;
                match (family.kind, *value) {
                    (Type::Counter, Value::Whole(n)) => ConstCounter::new(n).encode(one)?,
                    (Type::Counter, Value::Real(n)) => ConstCounter::new(n).encode(one)?,
                    (Type::Gauge, Value::Whole(n)) => ConstGauge::new(n).encode(one)?,
                    (Type::Gauge, Value::Real(n)) => ConstGauge::new(n).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_open_metrics() {
        let mut f = Families::default();
        let (a, b) = (labels(&[("element", "a\"\\\n")]), labels(&[("element", "b")]));
        let mut add = |kind, name, unit, help, labels, value| {
            let family = f.family(kind, name, unit, help);
            f.push(family, labels, value);
        };
        add(Type::Counter, "x-y", "packets", "Says \"a\\b\".\nMore.", &a, Value::Whole(u64::MAX));
        add(Type::Counter, "x-y", "packets", "Says \"a\\b\".\nMore.", &b, Value::Real(0.5));
        add(Type::Gauge, "h", "", "One.", &a, Value::Whole(1));
        add(Type::Gauge, "h", "", "Another.", &b, Value::Whole(2));
        add(Type::Gauge, "g", "", "G.", &b, Value::Real(-2.5));
        add(Type::Counter, "g", "", "C.", &b, Value::Whole(1));
        let want = r#"# HELP castanet_g G.
# TYPE castanet_g gauge
castanet_g{element="b"} -2.5
# HELP castanet_g_counter C.
# TYPE castanet_g_counter counter
castanet_g_counter_total{element="b"} 1
# HELP castanet_h The manual of the class describes this handler.
# TYPE castanet_h gauge
castanet_h{element="a\"\\\n"} 1
castanet_h{element="b"} 2
# HELP castanet_x_y_packets Says \"a\\b\".\nMore.
# TYPE castanet_x_y_packets counter
# UNIT castanet_x_y_packets packets
castanet_x_y_packets_total{element="a\"\\\n"} 18446744073709551615
castanet_x_y_packets_total{element="b"} 0.5
# EOF
"#;
        assert_eq!(f.text(), want);
        assert_eq!(Families::default().text(), "# EOF\n");
    }
}
