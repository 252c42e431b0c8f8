// SPDX-License-Identifier: MIT OR Apache-2.0
//! SourceIPHashMapper: chooses patterns by source address.

use super::mapper::{Choice, Mapper};
use super::pattern::words;
use super::registry::Registry;
use super::spec::{PatternText, Target};
use castanet_element::prelude::*;
use std::sync::Arc;

/// The maximum number of points of a ring.
const MOST_POINTS: u64 = 1 << 20;

/// Chooses a pattern for each new flow of a rewriter by the flow's source address, so that a client keeps its server.
///
/// Each pattern ends with the number of its server. A server has NNODES points on a ring; their positions depend only
/// on its number and SEED. A client has one point on the ring, and belongs to the server whose point comes next
/// (consistent hashing, Karger et al. 1997). So when a server is added or removed, no client moves between the other
/// servers. More points make the shares of the servers more even.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// servers :: SourceIPHashMapper(100 0x1234, - - 10.0.0.1 80 0 1 1, - - 10.0.0.2 80 0 1 2);
/// rw :: UDPRewriter(servers);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 80) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "SourceIPHashMapper", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, build, lifecycle)]
pub struct SourceIpHashMapper {
    args: Args,
    mapper: Arc<Mapper>,
    registry: Arc<Registry>,
}

/// Arguments of SourceIPHashMapper.
#[derive(Args)]
pub struct Args {
    /// `NNODES SEED`: the number of points that each server has on the hash ring, and the seed of the hash that places
    /// the points.
    ring: Ring,
    /// `SADDR SPORT DADDR DPORT FOUT ROUT SERVERID`, one or more.
    #[arg(rest)]
    pattern: Vec<Server>,
}

/// The parameters of a ring: points of each server, and the seed of the hash.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    nodes: u32,
    seed: u32,
}

impl ArgValue for Ring {
    const TYPE: &'static str = "nodes and seed";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Ring, ValueError> {
        match words(text).as_slice() {
            [nodes, seed] => {
                let nodes = u32::parse(nodes, cx)?;
                if nodes == 0 {
                    return Err("a server needs a node at least".into());
                }
                Ok(Ring { nodes, seed: u32::parse(seed, cx)? })
            }
            _ => Err("expected 'NNODES SEED'".into()),
        }
    }
}

/// A pattern, its outputs, and the number of the pattern's server.
#[derive(Clone, Debug)]
pub struct Server {
    target: Target<PatternText>,
    id: u32,
}

impl ArgValue for Server {
    const TYPE: &'static str = "pattern with outputs and server";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Server, ValueError> {
        match words(text).as_slice() {
            [rest @ .., id] => Ok(Server { target: Target::parse(rest, cx)?, id: u32::parse(id, cx)? }),
            [] => Err("expected 'SADDR SPORT DADDR DPORT FOUT ROUT SERVERID'".into()),
        }
    }
}

impl Build for SourceIpHashMapper {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.pattern.is_empty() {
            return Err("PATTERN: required argument missing".into());
        }
        if u64::from(args.ring.nodes).saturating_mul(args.pattern.len() as u64) > MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} nodes in all").into());
        }
        let ids: Vec<u32> = args.pattern.iter().map(|s| s.id).collect();
        let targets = args.pattern.iter().map(|s| s.target.clone()).collect();
        let ring = Choice::ring(&ids, args.ring.nodes, args.ring.seed);
        let mapper = Arc::new(Mapper::new(targets, cx.scope, ring));
        let registry = Registry::of(cx);
        registry.add_mapper(cx.me, mapper.clone());
        Ok(SourceIpHashMapper { args, mapper, registry })
    }
}

impl Element for SourceIpHashMapper {}

impl Lifecycle for SourceIpHashMapper {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        Ok(self.mapper.resolve(&self.registry)?)
    }
}
