// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration string of a `RouterLink`: for each port, first the inputs and then the outputs, two arguments. The
//! first one is `ROUTER ELEMENT CLASS`, the element that the link replaces; the second one is the element's
//! configuration string, quoted. A fourth word in the first argument is the place of the element in its router.

use castanet_lang::args::{cleaned, quote, split, unquote, words};
use std::fmt::Write as _;

/// The class of the elements that stand for links.
pub const ROUTER_LINK: &str = "RouterLink";

/// The element that a port of a `RouterLink` replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The name of the router.
    pub router: String,
    /// The name of the element in its router.
    pub element: String,
    /// The class of the element.
    pub class: String,
    /// The configuration string of the element.
    pub config: String,
    /// The index of the element in its router's flat configuration, if known.
    pub place: Option<usize>,
}

impl Port {
    /// The first argument of the element's configuration string, which names its device. Empty if there is none.
    pub fn device(&self) -> String {
        device(&self.config).unwrap_or_default()
    }
}

/// Returns the name of the device in the configuration string of a device class: the first argument, or DEVNAME.
pub fn device(config: &str) -> Option<String> {
    let all: Vec<_> = split(config).into_iter().map(|r| cleaned(config, r)).collect();
    let named = all.iter().find_map(|a| {
        let (word, rest) = castanet_lang::args::keyword(a)?;
        a.get(rest).filter(|_| word == "DEVNAME").map(unquote)
    });
    named.or_else(|| all.first().map(|a| unquote(a)))
}

/// Returns the configuration string of a `RouterLink` with these ports, inputs first.
pub fn print(ports: &[Port]) -> String {
    let mut out = String::new();
    for p in ports {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let _ = write!(out, "{} {} {}", p.router, p.element, p.class);
        if let Some(place) = p.place {
            let _ = write!(out, " {place}");
        }
        let _ = write!(out, ", {}", quote(&p.config));
    }
    out
}

/// Reads the configuration string of a `RouterLink`.
///
/// # Errors
/// The arguments do not describe ports. The message says what is expected.
pub fn parse(config: &str) -> Result<Vec<Port>, String> {
    let all: Vec<_> = split(config).into_iter().map(|r| cleaned(config, r)).collect();
    all.chunks(2)
        .map(|pair| {
            let [port, config] = pair else {
                return Err("expected two arguments for each port: ROUTER ELEMENT CLASS, and the element's \
                     configuration string in quotes"
                    .into());
            };
            let words: Vec<&str> = words(port).into_iter().filter_map(|r| port.get(r)).collect();
            let place = |word: &str| word.parse().ok();
            let (names, place) = match words.as_slice() {
                [a, b, c] => ([a, b, c], None),
                [a, b, c, n] if place(n).is_some() => ([a, b, c], place(n)),
                _ => return Err(format!("'{port}' is not ROUTER ELEMENT CLASS")),
            };
            let [router, element, class] = names.map(|n| n.to_string());
            Ok(Port { router, element, class, config: unquote(config), place })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_and_reading_are_inverse() {
        let port = |element: &str, config: &str, place| Port {
            router: "A".into(),
            element: element.into(),
            class: "ToDevice".into(),
            config: config.into(),
            place,
        };
        let ports = [
            port("one/to", "eth0", Some(4)),
            port("x", "", None),
            port("y", "a, \"b $c\\n\",\n 'd' // e", Some(0)),
        ];
        let text = print(&ports);
        assert!(text.starts_with("A one/to ToDevice 4, \"eth0\", A x ToDevice, \"\", "), "{text}");
        assert_eq!(parse(&text), Ok(ports.to_vec()));
        assert_eq!(parse(""), Ok(Vec::new()));
        for (text, error) in [
            ("A x ToDevice", "expected two arguments for each port"),
            ("A x, eth0", "'A x' is not ROUTER ELEMENT CLASS"),
            ("A x ToDevice y, eth0", "'A x ToDevice y' is not ROUTER ELEMENT CLASS"),
        ] {
            assert!(parse(text).is_err_and(|e| e.contains(error)), "{text}");
        }
    }

    #[test]
    fn devices() {
        for (config, name) in [
            ("eth0", Some("eth0")),
            (" \"eth1\" , SNIFFER false", Some("eth1")),
            ("SNIFFER false, DEVNAME eth2", Some("eth2")),
            ("", None),
        ] {
            assert_eq!(device(config).as_deref(), name);
        }
    }
}
