// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events that start a script: the argument `TYPE`, and the names of signals.

use castanet_element::spec::ValueError;
use castanet_element::spec::{ArgCx, ArgValue};
use rustix::process::Signal;

/// The event that starts a script, and the effect of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptType {
    /// Starts with the router.
    Active,
    /// Starts when its handler `run` is called.
    Passive,
    /// Runs for each packet.
    Packet,
    /// Runs for each call of any handler.
    Proxy,
    /// Starts before any task runs; its end stops the router.
    Driver,
    /// Starts when one of these signals arrives.
    Signal(Vec<i32>),
}

const SIGNALS: &[(&str, Signal)] = &[
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("CHLD", Signal::CHILD),
    ("CONT", Signal::CONT),
    ("STOP", Signal::STOP),
    ("TSTP", Signal::TSTP),
    ("TTIN", Signal::TTIN),
    ("TTOU", Signal::TTOU),
    ("URG", Signal::URG),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("VTALRM", Signal::VTALARM),
    ("PROF", Signal::PROF),
    ("WINCH", Signal::WINCH),
    ("IO", Signal::IO),
    ("SYS", Signal::SYS),
];

/// Parses a signal: a number, or a name with or without `SIG`.
pub fn signal(word: &str) -> Option<Signal> {
    if let Ok(n) = word.parse() {
        return Signal::from_named_raw(n);
    }
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().find(|s| s.0 == name).map(|s| s.1)
}

/// Whether a signal requests a stop of the router when it starts no script: true for SIGINT and SIGTERM.
pub fn stops_driver(signo: i32) -> bool {
    signo == Signal::INT.as_raw() || signo == Signal::TERM.as_raw()
}

impl ArgValue for ScriptType {
    const TYPE: &'static str = "script type";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<ScriptType, ValueError> {
        let mut words = text.split_ascii_whitespace();
        let first = words.next().unwrap_or("").to_ascii_uppercase();
        let kind = match first.as_str() {
            "ACTIVE" => ScriptType::Active,
            "PASSIVE" => ScriptType::Passive,
            "PACKET" | "PUSH" => ScriptType::Packet,
            "PROXY" => ScriptType::Proxy,
            "DRIVER" => ScriptType::Driver,
            "SIGNAL" => {
                let number = |w| signal(w).map(Signal::as_raw).ok_or_else(|| format!("unknown signal '{w}'"));
                let all: Vec<i32> = words.by_ref().map(number).collect::<Result<_, _>>()?;
                if all.is_empty() {
                    return Err("SIGNAL is followed by one signal or more".into());
                }
                ScriptType::Signal(all)
            }
            _ => {
                let all = ["ACTIVE", "PASSIVE", "PACKET", "PROXY", "DRIVER", "SIGNAL"];
                return Err(ValueError::not_one_of(&first, &all));
            }
        };
        match words.next() {
            Some(w) => Err(format!("unexpected '{w}'").into()),
            None => Ok(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::script::number::value;

    #[test]
    fn types() {
        for (text, kind) in [
            ("ACTIVE", Some(ScriptType::Active)),
            ("passive", Some(ScriptType::Passive)),
            ("PACKET", Some(ScriptType::Packet)),
            ("PUSH", Some(ScriptType::Packet)),
            ("PROXY", Some(ScriptType::Proxy)),
            ("DRIVER", Some(ScriptType::Driver)),
            ("SIGNAL 1 INT SIGTERM", Some(ScriptType::Signal(vec![1, 2, 15]))),
            ("SIGNAL", None),
            ("SIGNAL FOO", None),
            ("SIGNAL 0", None),
            ("SIGNAL 9999999999", None),
            ("ACTIVE 1", None),
            ("", None),
            ("LAZY", None),
        ] {
            assert_eq!(value::<ScriptType>(text), kind, "{text}");
        }
    }
}
