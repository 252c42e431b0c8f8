// SPDX-License-Identifier: MIT OR Apache-2.0
//! RoundRobinIPMapper: assigns patterns to new flows in rotation.

use super::mapper::{Choice, Mapper};
use super::pattern::words;
use super::registry::Registry;
use super::spec::{PatternText, Target};
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Assigns patterns to new flows of rewriters in rotation, and skips those without a free address and port.
///
/// A rewriter uses the mapper if one of its input specifications is the mapper's name.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// servers :: RoundRobinIPMapper(- - 10.0.0.1 80 0 1, - - 10.0.0.2 80 0 1);
/// rw :: UDPRewriter(servers);
/// RatedSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 80) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "RoundRobinIPMapper", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, build, lifecycle)]
#[class(takes_state = "whose turn it is")]
pub struct RoundRobinIpMapper {
    args: Args,
    mapper: Arc<Mapper>,
    registry: Arc<Registry>,
}

/// Arguments of RoundRobinIPMapper.
#[derive(Args)]
pub struct Args {
    /// `SADDR SPORT DADDR DPORT FOUT ROUT`, one or more.
    #[arg(rest)]
    pattern: Vec<Goal>,
}

/// A pattern and its outputs.
#[derive(Clone, Debug)]
pub struct Goal(Target<PatternText>);

impl ArgValue for Goal {
    const TYPE: &'static str = "pattern with outputs";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Goal, ValueError> {
        Ok(Goal(Target::parse(&words(text), cx)?))
    }
}

impl Build for RoundRobinIpMapper {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.pattern.is_empty() {
            return Err("PATTERN: required argument missing".into());
        }
        let targets = args.pattern.iter().map(|g| g.0.clone()).collect();
        let mapper = Arc::new(Mapper::new(targets, cx.scope, Choice::RoundRobin(AtomicUsize::new(0))));
        let registry = Registry::of(cx);
        registry.add_mapper(cx.me, mapper.clone());
        Ok(RoundRobinIpMapper { args, mapper, registry })
    }
}

impl Element for RoundRobinIpMapper {}

impl Lifecycle for RoundRobinIpMapper {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        Ok(self.mapper.resolve(&self.registry)?)
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.mapper.go_on_from(&old.mapper);
        Ok(())
    }
}
