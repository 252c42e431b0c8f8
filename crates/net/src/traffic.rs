// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pings between hosts.

use crate::NetError;
use crate::host::{Host, host_named};
use crate::options::Options;
use std::net::Ipv4Addr;

/// A ping of a simulated network.
#[derive(Clone, Debug)]
pub struct PingPlan {
    /// Its number, from 1.
    pub number: u16,
    /// The host that sends, by index.
    pub host: usize,
    /// The host or address that is to answer, as the user wrote it.
    pub to: String,
    /// The address that is to answer.
    pub address: Ipv4Addr,
}

/// Returns the pings that the options ask for.
pub(crate) fn pings(hosts: &[Host], options: &Options) -> Result<Vec<PingPlan>, NetError> {
    let mut all = Vec::new();
    let mut add = |host: usize, to: &str, address| {
        let number = u16::try_from(all.len() + 1).map_err(|_| NetError("more than 65535 pings".into()))?;
        all.push(PingPlan { number, host, to: to.into(), address });
        Ok::<(), NetError>(())
    };
    let with_address = |name: &str| -> Result<usize, NetError> {
        let i = host_named(name, hosts).map_err(|e| NetError(format!("--ping: {e}")))?;
        let known = hosts.get(i).is_some_and(|h| h.prefix.is_some());
        let missing = || {
            NetError(format!(
                "--ping: the host at {name} has no address, because its router has none there; give it one, as in \
                 --host {name}=10.0.0.2/24"
            ))
        };
        known.then_some(i).ok_or_else(missing)
    };
    let address = |i: usize| hosts.get(i).and_then(|h| h.prefix).map(|p| p.addr);
    for (from, to) in &options.pings {
        let from = with_address(from)?;
        let target = match to.parse() {
            Ok(address) => Some(address),
            Err(_) => address(with_address(to)?),
        };
        if let Some(target) = target {
            add(from, to, target)?;
        }
    }
    if options.ping_all {
        let able: Vec<usize> = (0..hosts.len()).filter(|&i| address(i).is_some()).collect();
        for &from in &able {
            for &to in able.iter().filter(|&&to| to != from) {
                if let (Some(host), Some(target)) = (hosts.get(to), address(to)) {
                    add(from, &host.name, target)?;
                }
            }
        }
    }
    Ok(all)
}
