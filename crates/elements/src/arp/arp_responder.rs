// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPResponder: answers ARP requests.

use super::values::Ip;
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::arp::{self, ArpHeader};
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use std::net::Ipv4Addr;

/// The length of an Ethernet frame with an ARP packet, in bytes.
const FRAME: usize = EtherHeader::LEN + ArpHeader::LEN;

/// Answers ARP requests for given addresses with given Ethernet addresses (RFC 826).
///
/// Each argument lists IP addresses or prefixes and, at any position, one Ethernet address. A name that AddressInfo
/// defines may stand for an IP and an Ethernet address. If several prefixes contain the requested address, the longest
/// one is used. The reply replaces the request. It is exactly 42 bytes long, and has only the VLAN annotation of the
/// request. All other packets leave unchanged on output 1, or are dropped if output 1 is not connected.
///
/// # Ports
/// Input 0: Ethernet frames with ARP packets. Output 0: ARP replies. Output 1 (optional): frames that are not answered.
///
/// # Example
/// ```click
/// ar :: ARPResponder(10.0.0.1 10.1.0.0/16 02-00-00-00-00-01, 10.1.2.3 02:00:00:00:00:02);
/// InfiniteSource(DATA \<ffffffffffff 020000000009 0806 0001080006040001 020000000009 0a000009 000000000000 0a010203>,
///                LIMIT 1, STOP true)
///     -> ar -> Print(reply, 42) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ARPResponder", ports = "1/1-2", processing = "a/ah", packets = "ether arp/ether arp, same", workers = replicate)]
#[class(reconfigure = keeps, build, handlers, drops(NotAnswered), depends = packet)]
pub struct ArpResponder {
    args: Args,
}

/// Arguments of ARPResponder.
#[derive(Args)]
pub struct Args {
    /// IP addresses or prefixes, and the Ethernet address with which requests for them are answered.
    #[arg(rest, name = "ENTRY")]
    entries: Vec<Entry>,
}

/// Prefixes, and the Ethernet address with which requests for them are answered.
#[derive(Clone, Debug)]
pub struct Entry {
    prefixes: Vec<Prefix>,
    ether: EtherAddr,
}

/// The help text for errors in an argument.
const FORM: &str = "an argument has IP addresses and their Ethernet address, without commas between them: 10.0.0.1 02-00-00-00-00-01";

impl ArgValue for Entry {
    const TYPE: &'static str = "IP[/MASK] ... ETHER";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Entry, ValueError> {
        let mut prefixes = Vec::new();
        // `own` holds the Ethernet addresses of words that give only an Ethernet address. `both` holds those of names
        // that also give an IP address.
        let (mut own, mut both) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            match (Prefix::parse(word, cx), EtherAddr::parse(word, cx)) {
                (Ok(p), ether) => {
                    prefixes.push(p);
                    both.extend(ether);
                }
                (Err(_), Ok(ether)) => own.push(ether),
                (Err(_), Err(_)) => {
                    return Err(format!("'{word}' is neither an IP address nor an Ethernet address").into());
                }
            }
        }
        let ether = match (own.as_slice(), both.as_slice()) {
            ([one], _) | ([], [one]) => *one,
            ([], []) => return Err(ValueError::from("missing ETH").help(FORM)),
            _ => return Err("more than one ETH".into()),
        };
        if prefixes.is_empty() {
            return Err(ValueError::from("missing IP").help(FORM));
        }
        Ok(Entry { prefixes, ether })
    }
}

impl Build for ArpResponder {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let mut made = ArpResponder { args: Args { entries: Vec::new() } };
        args.entries.into_iter().for_each(|e| made.enter(e));
        Ok(made)
    }
}

impl ArpResponder {
    /// Adds the prefixes of an entry. If a prefix exists already, its Ethernet address is replaced.
    fn enter(&mut self, entry: Entry) {
        for p in entry.prefixes {
            self.take_out(p);
            self.args.entries.push(Entry { prefixes: vec![p], ether: entry.ether });
        }
    }
    /// Removes a prefix. Returns whether the prefix existed.
    fn take_out(&mut self, prefix: Prefix) -> bool {
        let same = |p: &Prefix| p.network() == prefix.network() && p.len == prefix.len;
        let before = self.args.entries.len();
        self.args.entries.retain(|e| !e.prefixes.iter().any(same));
        self.args.entries.len() < before
    }
    fn look_up(&self, ip: Ipv4Addr) -> Option<EtherAddr> {
        let all = self.args.entries.iter().flat_map(|e| e.prefixes.iter().map(move |p| (p, e.ether)));
        all.filter(|(p, _)| p.contains(ip)).max_by_key(|(p, _)| p.len).map(|(_, e)| e)
    }
    /// Returns the reply to a frame if it is a request for an address in one of the prefixes.
    fn reply(&self, frame: &[u8]) -> Option<[u8; FRAME]> {
        let (ether, rest) = EtherHeader::split(frame)?;
        let request = ArpHeader::from_prefix(rest)?;
        if ether.ethertype.get() != ethertype::ARP
            || !request.is_op(arp::op::REQUEST)
            || request.sender_ether.is_group()
        {
            return None;
        }
        let mine = self.look_up(Ipv4Addr::from_bits(request.target_ip.get()))?;
        let mut out = [0; FRAME];
        let (head, body) = out.split_first_chunk_mut::<{ EtherHeader::LEN }>()?;
        *head = EtherHeader::new(request.sender_ether, mine, ethertype::ARP).to_bytes();
        body.copy_from_slice(&request.reply(mine).to_bytes());
        Some(out)
    }
}

#[handlers]
impl ArpResponder {
    /// One line for each prefix, the longest prefix first: `IP/LENGTH ETHER`.
    #[read(merge = first)]
    fn table(&self) -> Table {
        let all = self.args.entries.iter().flat_map(|e| e.prefixes.iter().map(move |p| (p, e.ether)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(p, _)| std::cmp::Reverse(p.len));
        Table(all.into_iter().map(|(p, e)| format!("{} {e}\n", p.show())).collect())
    }
    /// The Ethernet address with which requests for an IP address are answered; empty if they are not answered.
    #[read(merge = first)]
    fn lookup(&self, Ip(ip): Ip<Ipv4Addr>) -> Option<EtherAddr> {
        self.look_up(ip)
    }
    /// Adds addresses to answer for, in the form of one ENTRY.
    #[write]
    fn add(&mut self, entry: Entry) {
        self.enter(entry);
    }
    /// Stops answering for an address or prefix.
    #[write]
    fn remove(&mut self, Ip(prefix): Ip<Prefix>) -> Result<(), HandlerError> {
        if self.take_out(prefix) { Ok(()) } else { Err(format!("{} not found", prefix.show()).into()) }
    }
}

impl Action for ArpResponder {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(reply) = self.reply(p.data()) else { return cx.out_or(1, Reason::NotAnswered) };
        p.truncate(FRAME);
        if let Some(frame) = p.data_mut().first_chunk_mut() {
            *frame = reply;
        }
        let vlan: [u8; 2] = p.anno(anno::VLAN);
        p.set_anno(0, [0; anno::SIZE]);
        p.set_anno(anno::VLAN, vlan);
        p.set_timestamp(0);
        p.set_packet_type(PacketType::Host);
        p.set_mac_header(0);
        p.set_network_header(EtherHeader::LEN, ArpHeader::LEN);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests;
