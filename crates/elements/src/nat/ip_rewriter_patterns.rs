// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPRewriterPatterns: gives names to patterns.

use super::pattern::{Pattern, words};
use super::registry::Registry;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Gives names to patterns; rewriters use them as `pattern NAME FOUT ROUT`, mappers as `NAME FOUT ROUT`.
///
/// A pattern in sequential order (`#`) has one current position, which all elements that use its name share.
/// A name that is defined inside a compound element is visible only there.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// IPRewriterPatterns(outside 9.9.9.9 1024-65535# - -);
/// rw :: UDPRewriter(pattern outside 0 1);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.patterns, stop);
/// ```
#[derive(Class)]
#[class(name = "IPRewriterPatterns", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, build)]
pub struct IpRewriterPatterns {
    args: Args,
}

/// Arguments of IPRewriterPatterns.
#[derive(Args)]
pub struct Args {
    /// A name and its pattern: `NAME SADDR SPORT DADDR DPORT`.
    #[arg(rest)]
    def: Vec<Definition>,
}

/// A pattern and its name.
#[derive(Clone, Debug)]
pub struct Definition {
    name: String,
    pattern: Arc<Pattern>,
}

impl ArgValue for Definition {
    const TYPE: &'static str = "pattern definition";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Definition, ValueError> {
        match words(text).as_slice() {
            [name, rest @ ..] if !rest.is_empty() => {
                Ok(Definition { name: (*name).to_string(), pattern: Arc::new(Pattern::parse(rest, cx)?) })
            }
            _ => Err("expected 'NAME SADDR SPORT DADDR DPORT'".into()),
        }
    }
}

impl Build for IpRewriterPatterns {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let registry = Registry::of(cx);
        for d in &args.def {
            if !registry.add_pattern(format!("{}{}", cx.scope, d.name), d.pattern.clone()) {
                return Err(format!("pattern '{}' is defined twice", d.name).into());
            }
        }
        Ok(IpRewriterPatterns { args })
    }
}

impl Element for IpRewriterPatterns {}
