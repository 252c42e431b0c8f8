// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error: rejects a configuration.

use castanet_element::prelude::*;

/// Rejects the configuration with the given error messages.
///
/// Compound elements use this class to reject arguments or ports that make no sense. It accepts any number of ports.
///
/// # Ports
/// Any number of inputs and outputs. No packet ever passes through them.
///
/// # Example
/// ```click
/// elementclass Half { input -> Discard; Error("Half is not finished yet"); }
/// InfiniteSource(LIMIT 5, STOP true) -> Half;
/// ```
#[derive(Class)]
#[class(name = "Error", ports = "-/-", processing = "a/a", flow = "x/y", packets = "any/any", workers = exclusive, build)]
pub struct Error {
    args: Args,
}

/// Arguments of Error.
#[derive(Args)]
pub struct Args {
    /// The error message; each further argument is a separate error.
    #[arg(rest)]
    message: Vec<String>,
}

impl Build for Error {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.message.is_empty() {
            return Err("an Error element stands here".into());
        }
        Err(ConfigError(args.message.into_iter().map(|m| ArgError::new(m, 0..usize::MAX)).collect()))
    }
}

impl Element for Error {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn fails_with_its_texts() {
        for (config, want) in [
            ("\"no, never\"", vec!["no, never"]),
            ("a, \"b c\"", vec!["a", "b c"]),
            ("", vec!["an Error element stands here"]),
        ] {
            for (inputs, outputs) in [(0, 0), (2, 3)] {
                assert_eq!(Kit::<Error>::with_ports(config, inputs, outputs).err().unwrap(), want);
            }
        }
    }
}
