// SPDX-License-Identifier: MIT OR Apache-2.0
//! PortInfo: gives names to ports.

use super::{Definition, each_argument};
use castanet_element::prelude::*;

/// Gives names to TCP and UDP ports, for all arguments that take a port.
///
/// Each argument is a name, a port, optionally `/` and a protocol, and further names of the same port.
/// Without a protocol, the names are valid for TCP and UDP. `#` starts a comment, which extends to the end of
/// the argument.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// PortInfo(game 5555/udp play);
/// InfiniteSource(LIMIT 5, STOP true) -> MarkIPHeader -> c :: IPClassifier(udp port game, -) -> Discard;
/// c [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "PortInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct PortInfo {
    args: Args,
}

/// Arguments of PortInfo.
#[derive(Args)]
pub struct Args {
    /// A name, its port, and further names.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for PortInfo {}

/// Returns the numbers of the protocols that a word names.
fn protocols(word: Option<&str>) -> Option<Vec<u8>> {
    Some(match word {
        None => vec![6, 17],
        Some("tcp") => vec![6],
        Some("udp") => vec![17],
        Some("dccp") => vec![33],
        Some("sctp") => vec![132],
        Some("udplite") => vec![136],
        Some(n) => vec![n.parse().ok()?],
    })
}

impl Information for PortInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| {
            let end = words.iter().position(|w| w.starts_with('#')).unwrap_or(words.len());
            let (name, port, aliases) = match words.get(..end) {
                Some([name, port, aliases @ ..]) => (name, port, aliases),
                Some([]) => return Ok(()),
                _ => return Err("expected 'NAME PORT[/PROTOCOL] [ALIAS...]'".into()),
            };
            let (number, protocol) =
                port.split_once('/').map_or((port.as_str(), None), |(n, p)| (n, Some(p)));
            let cx = ArgCx { scope, names, origin: Origin::Operator };
            let number = u16::parse(number, &cx).map_err(|e| format!("port '{number}': {e}"))?;
            let protocols = protocols(protocol)
                .ok_or_else(|| format!("unknown protocol '{}'", protocol.unwrap_or("")))?;
            for protocol in protocols {
                for name in std::iter::once(name).chain(aliases) {
                    names.define_port(scope, name, protocol, number);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::messages;
    use super::*;

    #[test]
    fn names_and_aliases() {
        let mut names = Names::new();
        PortInfo::inform(
            "game 5555/udp play # fun, web 8080, # all comment, x 7/132, y 8/40",
            "",
            &mut names,
        )
        .unwrap();
        let port = |name, protocol| names.port("", name, protocol);
        assert_eq!(
            (port("game", 17), port("play", 17), port("game", 6), port("fun", 17)),
            (Some(5555), Some(5555), None, None)
        );
        assert_eq!((port("web", 6), port("web", 17)), (Some(8080), Some(8080)));
        assert_eq!((port("x", 132), port("y", 40)), (Some(7), Some(8)));
    }

    #[test]
    fn errors() {
        let bad = PortInfo::inform("a, b x, c 65536, d 1/foo", "", &mut Names::new());
        assert_eq!(
            messages(bad),
            [
                "expected 'NAME PORT[/PROTOCOL] [ALIAS...]'",
                "port 'x': invalid number",
                "port '65536': out of range, bound 65535",
                "unknown protocol 'foo'",
            ]
        );
    }
}
