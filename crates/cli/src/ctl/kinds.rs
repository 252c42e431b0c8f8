// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up the kinds of handler values (counter, flag and so on), which the classes declare.

use castanet_classes::Registry;
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_runtime::Classes;
use castanet_runtime::global_handlers::global;
use castanet_runtime::handlers::provided;
use castanet_spec::value::{Bandwidth, Nanos};
use castanet_spec::{ArgCx, ArgValue, ClassSpec, HandlerSpec, Names, Origin, ValueKind};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Looks up the kinds of a router's handler values. The class of each element is read from the router once.
pub struct Kinds {
    registry: Registry,
    /// The specs of elements, by name. `None` if this program does not have the class. The router may have loaded
    /// it from a package.
    specs: HashMap<String, Option<&'static ClassSpec>>,
}

impl Kinds {
    /// Creates an empty lookup table.
    pub fn new() -> Kinds {
        Kinds { registry: Registry::new(), specs: HashMap::new() }
    }

    /// Returns the kind of a handler's value. `None` if neither the runtime nor the element's class declares the
    /// handler, or if this program does not have that class.
    ///
    /// # Errors
    /// When the connection breaks. A refusal to read the element's class is not an error.
    pub fn of(&mut self, client: &mut Client, handler: &str) -> Result<Option<ValueKind>, ClientError> {
        Ok(self.declared(client, handler)?.filter(|h| h.readable()).map(|h| h.kind))
    }

    /// Returns the declaration of a handler. `None` as for [`Kinds::of`].
    ///
    /// # Errors
    /// When the connection breaks. A refusal to read the element's class is not an error.
    pub fn declared(
        &mut self,
        client: &mut Client,
        handler: &str,
    ) -> Result<Option<&'static HandlerSpec>, ClientError> {
        let Some((element, handler)) = handler.rsplit_once('.') else {
            return Ok(global(true).find(|h| h.name == handler));
        };
        let spec = match self.specs.get(element) {
            Some(spec) => *spec,
            None => {
                let spec = self.spec(client, element)?;
                self.specs.insert(element.to_string(), spec);
                spec
            }
        };
        let provided = || provided(true, true).find(|h| h.name == handler);
        Ok(spec.and_then(|s| s.handler(handler)).or_else(provided))
    }

    /// Returns the declaration of a class. `None` if this program does not have it.
    pub fn class(&self, name: &str) -> Option<&'static ClassSpec> {
        self.registry.get(name).map(|d| d.spec)
    }

    fn spec(&self, client: &mut Client, element: &str) -> Result<Option<&'static ClassSpec>, ClientError> {
        match client.read_text(&format!("{element}.class"), "") {
            Ok(class) => Ok(self.class(class.trim())),
            Err(e) if e.is_refusal() => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Converts a value to JSON: to a number or boolean if its kind says so, otherwise to a string. Times with a unit
/// become seconds, rates with a unit become bytes per second. A whole number of unknown kind also becomes a
/// number.
pub fn json(text: &str, kind: Option<ValueKind>) -> Value {
    let line = text.trim_end_matches('\n');
    let whole =
        || line.parse::<u64>().map(|n| json!(n)).or_else(|_| line.parse::<i64>().map(|n| json!(n))).ok();
    let real = || line.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| json!(n));
    let value = match kind {
        None => whole(),
        Some(ValueKind::Flag) => line.parse::<bool>().ok().map(|b| json!(b)),
        Some(ValueKind::Counter | ValueKind::Gauge) => whole().or_else(real),
        Some(ValueKind::Time) => real().or_else(|| with_unit::<Nanos>(line).map(|t| json!(t.seconds()))),
        Some(ValueKind::Rate) => real().or_else(|| with_unit::<Bandwidth>(line).map(|b| json!(b.0 as f64))),
        Some(ValueKind::Address | ValueKind::Table | ValueKind::Text) => None,
    };
    value.unwrap_or_else(|| json!(text))
}

fn with_unit<T: ArgValue>(text: &str) -> Option<T> {
    T::parse(text, &ArgCx { scope: "", names: &Names::default(), origin: Origin::default() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_where_they_are_known_to_be() {
        use ValueKind::{Counter, Flag, Gauge, Rate, Text, Time};
        for (text, kind, want) in [
            ("7", None, json!(7)),
            ("7.5", None, json!("7.5")),
            ("7", Some(Text), json!("7")),
            ("7", Some(Counter), json!(7)),
            ("-7", Some(Gauge), json!(-7)),
            ("7\n", Some(Rate), json!(7.0)),
            ("80kbps", Some(Rate), json!(10_000.0)),
            ("0.005", Some(Time), json!(0.005)),
            ("0.005000s", Some(Time), json!(0.005)),
            ("500ms", Some(Time), json!(0.5)),
            ("soon", Some(Time), json!("soon")),
            ("true", Some(Flag), json!(true)),
            ("", Some(Counter), json!("")),
        ] {
            assert_eq!(json(text, kind), want, "{text:?} {kind:?}");
        }
    }
}
