// SPDX-License-Identifier: MIT OR Apache-2.0
//! DevirtualizeInfo: accepts settings of a configuration compiler.

use super::Definition;
use castanet_element::prelude::*;

/// Holds instructions for a program that compiles a configuration to machine code.
///
/// The element is accepted and has no effect.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// DevirtualizeInfo(Counter);
/// InfiniteSource(LIMIT 5, STOP true) -> Counter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "DevirtualizeInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate)]
#[class(information)]
pub struct DevirtualizeInfo {
    args: Args,
}

/// Arguments of DevirtualizeInfo.
#[derive(Args)]
pub struct Args {
    /// Any text; it has no effect.
    #[arg(rest)]
    pub instruction: Vec<Definition>,
}

impl Element for DevirtualizeInfo {}

impl Information for DevirtualizeInfo {
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
        for config in ["", "Counter 1, x", "\"a b\""] {
            assert!(Kit::<DevirtualizeInfo>::with_ports(config, 0, 0).is_ok(), "{config}");
        }
    }
}
