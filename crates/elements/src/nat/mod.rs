// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation of addresses and ports (RFC 2663, RFC 3022, RFC 4787, RFC 5382, RFC 5508).
//!
//! - [`mod@tuple`], [`header`]: the keys of packets, and how packets are rewritten
//! - [`flow`], [`store`]: flows, and their table; [`seq`]: shifted sequence numbers
//! - [`pattern`], [`spec`], [`mapper`]: how packets of new flows are rewritten
//! - [`args`]: arguments that rewriters have in common
//! - `ftp_command`: the commands of FTP clients
//! - [`handle`], [`registry`]: how the elements find each other
//! - [`rewriter`]: the engine of all rewriters

use castanet_element::{ClassDef, action, element};

pub mod args;
pub mod flow;
mod ftp_command;
pub mod ftp_port_mapper;
pub mod handle;
pub mod header;
pub mod icmp_ping_rewriter;
pub mod icmp_rewriter;
pub mod ip_addr_pair_rewriter;
pub mod ip_addr_rewriter;
pub mod ip_rewriter;
pub mod ip_rewriter_patterns;
pub mod mapper;
pub mod pattern;
pub mod registry;
pub mod rewriter;
pub mod round_robin_ip_mapper;
pub mod seq;
pub mod source_ip_hash_mapper;
pub mod spec;
pub mod store;
pub mod tcp_rewriter;
#[cfg(test)]
mod tests;
pub mod tuple;
pub mod udp_rewriter;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<ip_rewriter::IpRewriter>(),
    element::<tcp_rewriter::TcpRewriter>(),
    element::<udp_rewriter::UdpRewriter>(),
    element::<ip_addr_rewriter::IpAddrRewriter>(),
    element::<ip_addr_pair_rewriter::IpAddrPairRewriter>(),
    element::<icmp_ping_rewriter::IcmpPingRewriter>(),
    element::<icmp_rewriter::IcmpRewriter>(),
    element::<ip_rewriter_patterns::IpRewriterPatterns>(),
    element::<round_robin_ip_mapper::RoundRobinIpMapper>(),
    element::<source_ip_hash_mapper::SourceIpHashMapper>(),
    action::<ftp_port_mapper::FtpPortMapper>(),
];
