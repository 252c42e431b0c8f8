// SPDX-License-Identifier: MIT OR Apache-2.0
//! Learns addresses from ARP packets, and sends the packets that waited for these addresses.

use super::cache::header;
use super::{ArpQuerier, RELEASE, lose};
use crate::arp::arp_table::Lost;
use castanet_element::prelude::*;
use castanet_wire::arp::{self, ArpHeader};
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use castanet_wire::ipv4;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

impl ArpQuerier {
    /// Learns Ethernet addresses from the ARP packets that arrive on input 1.
    pub(super) fn learn(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.now();
        for p in batch.drain() {
            let me = self.own.ip.load(Ordering::Relaxed);
            let Some(Sender { ip, ether, target, reply }) = sender(p.data()).filter(|s| s.ip != me) else {
                cx.drop(p, Reason::BadArp);
                continue;
            };
            let local = self.args.ip.subnet.is_none_or(|s| s.contains(Ipv4Addr::from_bits(ip)));
            let mut lost = Lost::new();
            let held = self.state.answer(ip, ether, now, self.workers, local && target == me, &mut lost);
            lose(lost, cx);
            let Some(held) = held else {
                // If an unknown host asks for another host, nothing is learnt from its request, but the request is not
                // an error.
                cx.drop(p, if reply { Reason::BadArp } else { Reason::Consumed });
                continue;
            };
            let turn = p.turn();
            cx.drop(p, Reason::Consumed);
            self.responses.add(u64::from(reply));
            self.wait_for(ip, &held, now, cx);
            let header = header(ether, self.ether);
            for mut p in held {
                p.set_turn(turn);
                self.send(p, &header, cx);
            }
        }
        if !self.timed {
            self.watch(now, cx);
        }
    }

    /// Prepares a further call of `release` for the address `ip`. `held` are the packets that waited for `ip`. Called
    /// before they are sent, because other workers may put more packets for `ip` in the table meanwhile. Adds `ip` to
    /// `releasing`, sets the timer that calls `release`, and returns true. Returns false, and adds nothing, if no other
    /// workers use the table or if `held` is empty.
    pub(super) fn wait_for(&mut self, ip: u32, held: &VecDeque<Packet>, now: i64, cx: &mut Cx<'_>) -> bool {
        if !self.workers || held.is_empty() {
            return false;
        }
        self.releasing.push(ip);
        cx.set_timer(RELEASE, now);
        true
    }

    /// Sends the packets that arrived in the table while earlier waiting packets were being sent. The timer calls this
    /// function again until no packets wait.
    pub(super) fn release(&mut self, now: i64, cx: &mut Cx<'_>) {
        for ip in std::mem::take(&mut self.releasing) {
            if let Some((ether, held)) = self.state.release(ip) {
                self.wait_for(ip, &held, now, cx);
                let header = header(ether, self.ether);
                for p in held {
                    self.send(p, &header, cx);
                }
            }
        }
    }
}

/// What a valid ARP packet says about its sender.
struct Sender {
    ip: u32,
    ether: EtherAddr,
    /// The target IP address: the receiver of a reply, or the address that a request asks for.
    target: u32,
    reply: bool,
}

/// Returns the sender of an Ethernet frame with a valid ARP request or reply. None for other frames.
fn sender(frame: &[u8]) -> Option<Sender> {
    let (ether, rest) = EtherHeader::split(frame)?;
    let h = ArpHeader::from_prefix(rest)?;
    let (ip, from, reply) = (h.sender_ip.get(), h.sender_ether, h.is_op(arp::op::REPLY));
    let good = ether.ethertype.get() == ethertype::ARP
        && (reply || h.is_op(arp::op::REQUEST))
        && !from.is_group()
        && ip != 0
        && ip != u32::MAX
        && !ipv4::is_multicast(ip);
    good.then_some(Sender { ip, ether: from, target: h.target_ip.get(), reply })
}
