// SPDX-License-Identifier: MIT OR Apache-2.0
//! ClickyInfo: accepts settings of a drawing program.

use super::Definition;
use castanet_element::prelude::*;

/// Holds a drawing style, for programs that draw the configuration.
///
/// The element is accepted and has no effect: `castanet graph` has a style of its own.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// ClickyInfo(STYLE "* { fill: white }");
/// InfiniteSource(LIMIT 5, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ClickyInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct ClickyInfo {
    args: Args,
}

/// Arguments of ClickyInfo.
#[derive(Args)]
pub struct Args {
    /// Any text; it has no effect.
    #[arg(rest)]
    pub style: Vec<Definition>,
}

impl Element for ClickyInfo {}

impl Information for ClickyInfo {
    fn inform(_: &str, _: &str, _: &mut Names) -> Result<(), ConfigError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn anything_is_accepted() {
        for config in ["", "STYLE \"@media print { * { shape: box } }\", x", "a 1 2, STYLE b, STYLE \\<00>"] {
            assert!(Kit::<ClickyInfo>::with_ports(config, 0, 0).is_ok(), "{config}");
        }
    }
}
