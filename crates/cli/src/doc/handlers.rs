// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the handlers of a class, and describes their flags and values in words.

use castanet_runtime::handlers::LIVE;
use castanet_spec::{ClassSpec, HandlerFlags, HandlerSpec, Reconfigure};

/// Describes the flags of a handler in words.
pub fn flags(flags: HandlerFlags) -> String {
    let mut words = vec![match flags.access() {
        (true, true) => "read, write",
        (true, false) => "read",
        (false, true) => "write",
        (false, false) => "",
    }];
    for (flag, word) in [
        (HandlerFlags::PARAMETERS, "with parameters"),
        (HandlerFlags::BUTTON, "button"),
        (HandlerFlags::CHECKBOX, "checkbox"),
        (HandlerFlags::UNCOMMON, "uncommon"),
        (HandlerFlags::OPENS_FILES, "restricted"),
        (HandlerFlags::RECONFIGURES, "restricted"),
    ] {
        if flags.contains(flag) {
            words.push(word);
        }
    }
    words.retain(|w| !w.is_empty());
    words.join(", ")
}

/// Returns the handlers that a class declares, with their names: first the plain ones, then numbered ones such as
/// `patternN`, then those of its arguments.
pub fn declared(spec: &ClassSpec) -> Vec<(String, HandlerSpec)> {
    let plain = |h: &HandlerSpec| (h.name.to_string(), shown(spec, h));
    let indexed = spec.indexed.iter().map(|h| (format!("{}N", h.name), *h));
    spec.handlers.iter().map(plain).chain(indexed).chain(spec.arg_handlers.iter().map(plain)).collect()
}

/// Returns the handlers that a class declares, then those that the runtime adds.
pub fn all(spec: &ClassSpec) -> Vec<(String, HandlerSpec)> {
    let mut all = declared(spec);
    let own = all.len();
    for h in castanet_runtime::handlers::provided(spec.task, !spec.drops.is_empty()) {
        if all[..own].iter().all(|o| o.0 != h.name) {
            all.push((h.name.to_string(), shown(spec, h)));
        }
    }
    all
}

/// Returns a handler as it is in a running router: `config` can be written if the class can be reconfigured.
fn shown(spec: &ClassSpec, h: &HandlerSpec) -> HandlerSpec {
    match h.name == "config" && spec.reconfigure != Reconfigure::Refused {
        true => HandlerSpec { flags: LIVE, ..*h },
        false => *h,
    }
}

/// Describes the kind of a handler's value, with its unit if it has one. Empty if the handler cannot be read.
pub fn value(h: &HandlerSpec) -> String {
    match (h.readable(), h.unit) {
        (false, _) => String::new(),
        (true, "") => h.kind.word().to_string(),
        (true, unit) if unit == h.kind.word() => unit.to_string(),
        (true, unit) => format!("{}, {unit}", h.kind.word()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_classes::Registry;
    use castanet_spec::ValueKind;

    #[test]
    fn values_in_words() {
        for (flags, kind, unit, words) in [
            ("w", ValueKind::Text, "", ""),
            ("r", ValueKind::Flag, "", "flag"),
            ("rw", ValueKind::Counter, "packets", "counter, packets"),
            ("r", ValueKind::Time, "seconds", "seconds"),
        ] {
            let spec = HandlerSpec { unit, ..HandlerSpec::new("x", HandlerFlags::parse(flags), "", kind) };
            assert_eq!(value(&spec), words);
        }
    }

    #[test]
    fn config_can_be_written_where_the_class_can_be_reconfigured() {
        let mut seen = [0; 2];
        for spec in Registry::new().classes() {
            let all = all(spec);
            let config: Vec<_> = all.iter().filter(|h| h.0 == "config").collect();
            let live = spec.reconfigure != Reconfigure::Refused;
            assert_eq!(config.len(), 1, "{}", spec.name);
            assert_eq!(config[0].1.writable(), live, "{}", spec.name);
            seen[usize::from(live)] += 1;
        }
        assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    }

    #[test]
    fn flags_in_words() {
        assert_eq!(flags(HandlerFlags::READ | HandlerFlags::PARAMETERS), "read, with parameters");
    }
}
