// SPDX-License-Identifier: MIT OR Apache-2.0
//! Message: prints a message from the configuration.

use castanet_element::prelude::*;

/// Prints a message when the router is initialised.
///
/// With TYPE `WARNING`, the message is a warning about the configuration. With TYPE `ERROR`, the message is an error,
/// and no router is built.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// Message("five packets, then the end");
/// InfiniteSource(LIMIT 5, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Message", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build, lifecycle)]
pub struct Message {
    args: Args,
    shown: bool,
}

/// Arguments of Message.
#[derive(Args)]
pub struct Args {
    /// The text of the message.
    message: String,
    /// The kind of message: `MESSAGE`, `WARNING` or `ERROR`.
    #[arg(name = "TYPE", default = Word("MESSAGE".into()), show = "MESSAGE")]
    kind: Word,
}

impl Build for Message {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let shown = match args.kind.0.as_str() {
            "MESSAGE" => {
                cx.tell_beside_errors(&args.message);
                true
            }
            "WARNING" => {
                cx.warn(ArgError::warning(args.message.clone(), 0..usize::MAX));
                false
            }
            "ERROR" => return Err(args.message.into()),
            _ => return Err("TYPE: expected MESSAGE, WARNING or ERROR".into()),
        };
        Ok(Message { args, shown })
    }
}

impl Lifecycle for Message {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.shown {
            let (at, name) = (cx.place().heading(), cx.name());
            let text = format!("{at}While configuring '{name} :: Message':\n  {}", self.args.message);
            cx.message(&text);
        }
        Ok(())
    }
}

impl Element for Message {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn every_type() {
        for config in ["\"a, b\"", "\"a, b\", MESSAGE", "TYPE MESSAGE, MESSAGE \"a, b\""] {
            let mut kit = Kit::<Message>::new(config).unwrap();
            assert_eq!(kit.messages(), ["While configuring 'e :: Message':\n  a, b"]);
            assert_eq!(kit.warnings(), ["a, b"], "shown only beside errors");
        }
        let mut kit = Kit::<Message>::new("hark, WARNING").unwrap();
        assert!(kit.messages().is_empty());
        assert_eq!(kit.warnings(), ["hark"]);
        assert_eq!(Kit::<Message>::new("hark, ERROR").err().unwrap(), ["hark"]);
        assert!(Kit::<Message>::new("hark, OTHER").is_err() && Kit::<Message>::new("").is_err());
    }
}
