// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors in the kernel: programs rewrite those about packets of flows that rewriters have copied to the kernel. All others go up.

use super::IcmpRewriter;
use crate::nat::flow::RewriterKind;
use crate::nat::rewriter::kernel::{annotate_reply, changed};
use crate::nat::store::copies::{COPIES, at};
use castanet_element::InKernel;
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Operand, Size, Test, Value};
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::icmp::kind;
use castanet_wire::ipv4::{MORE_FRAGMENTS, OFFSET_MASK, protocol};

/// Offsets in an IP packet without options that quotes one without options.
mod offset {
    pub const TOTAL: i32 = 2;
    pub const FRAGMENT: i32 = 6;
    pub const PROTOCOL: i32 = 9;
    pub const CHECKSUM: i32 = 10;
    pub const SRC: i32 = 12;
    pub const DST: i32 = 16;
    pub const ICMP_TYPE: i32 = 20;
    pub const ICMP_CHECKSUM: i32 = 22;
    /// The quoted IP header.
    pub const QUOTE: i32 = 28;
    /// The part that is quoted behind it: the ports, or the type of a ping.
    pub const TRANSPORT: i32 = 48;
    pub const PING_CHECKSUM: i32 = 50;
    pub const PING_ID: i32 = 52;
    pub const UDP_CHECKSUM: i32 = 54;
    /// The length that every rewritten error has.
    pub const LEAST: i32 = 56;
    pub const TCP_CHECKSUM: i32 = 64;
}

/// The kinds of quoted packets that programs rewrite.
#[derive(Clone, Copy, PartialEq)]
enum Quoted {
    Tcp,
    Udp,
    EchoRequest,
    EchoReply,
}

impl Quoted {
    fn protocol(self) -> u8 {
        match self {
            Quoted::Tcp => protocol::TCP,
            Quoted::Udp => protocol::UDP,
            Quoted::EchoRequest | Quoted::EchoReply => protocol::ICMP,
        }
    }
    fn has_ports(self) -> bool {
        matches!(self, Quoted::Tcp | Quoted::Udp)
    }
}

struct Lowering<'a, 'b> {
    code: &'a mut Code<'b>,
    /// The offset of the IP header from the start of the packet.
    ip: i32,
    up: Label,
    dst_anno: bool,
    reply_anno: Option<usize>,
}

impl InKernel for IcmpRewriter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Some((ip, 20)) = code.network() else {
            return Err("packets reach it without a marked IP header".into());
        };
        let up = code.label();
        let reply_anno = self.args.reply_anno.map(|Anno1(at)| at);
        let mut lowering = Lowering { code, ip, up, dst_anno: self.args.dst_anno, reply_anno };
        let protocol = lowering.begin();
        for quoted in [Quoted::Tcp, Quoted::Udp, Quoted::EchoRequest, Quoted::EchoReply] {
            let Some((rewriter, kind)) = self.rewriter_of(quoted) else { continue };
            let other = lowering.code.label();
            lowering.code.branch(protocol, Test::Differ, u32::from(quoted.protocol()), other);
            if !quoted.has_ports() {
                let wanted = if quoted == Quoted::EchoRequest { kind::ECHO } else { kind::ECHO_REPLY };
                let found = lowering.load(offset::TRANSPORT, Size::Byte);
                lowering.code.branch(found, Test::Differ, u32::from(wanted), other);
            }
            lowering.rewrite(quoted, rewriter, kind.table(quoted.protocol()));
            lowering.code.bind(other);
        }
        code.jump(up);
        code.bind(up);
        code.up();
        Ok(())
    }
}

impl IcmpRewriter {
    /// The first rewriter in MAPS that might know the flow of a quoted packet, if programs can look it up: its element.
    fn rewriter_of(&self, quoted: Quoted) -> Option<(u32, RewriterKind)> {
        let may_know = |kind: RewriterKind| match kind {
            RewriterKind::Ports | RewriterKind::AnyPorts => quoted.has_ports(),
            RewriterKind::Ping => !quoted.has_ports(),
            RewriterKind::Addr | RewriterKind::Pair => true,
        };
        let all = self.args.maps.0.iter().zip(&self.maps);
        let ((element, _), (_, kind, port)) = all.into_iter().find(|(_, (_, kind, _))| may_know(*kind))?;
        let by_addresses = matches!(kind, RewriterKind::Addr | RewriterKind::Pair);
        (port.is_none() && !by_addresses).then_some((*element, *kind))
    }
}

impl Lowering<'_, '_> {
    fn load(&mut self, offset: i32, size: Size) -> Value {
        self.code.load(self.ip + offset, size)
    }
    fn store(&mut self, offset: i32, size: Size, from: impl Into<Operand>) {
        self.code.store(self.ip + offset, size, from);
    }
    fn up_if(&mut self, value: Value, test: Test, n: impl Into<Operand>) {
        self.code.branch(value, test, n, self.up);
    }
    fn up_if_common(&mut self, offset: i32, bits: u16) {
        let field = self.load(offset, Size::Half);
        self.up_if(field, Test::Common, u32::from(u16::from_ne_bytes(bits.to_be_bytes())));
    }
    fn has_options(&mut self, header: i32) {
        let first = self.load(header, Size::Byte);
        let length = self.code.compute(Arithmetic::And, first, 15u32);
        self.up_if(length, Test::Differ, 5u32);
    }

    /// Lets everything go up but whole ICMP errors that quote the start of a packet to the sender of that packet, both without IP options.
    /// Returns the protocol of the quoted packet.
    fn begin(&mut self) -> Value {
        self.code.need_at(self.ip, offset::LEAST.cast_unsigned(), self.up);
        self.has_options(0);
        let outer = self.load(offset::PROTOCOL, Size::Byte);
        self.up_if(outer, Test::Differ, u32::from(protocol::ICMP));
        self.up_if_common(offset::FRAGMENT, MORE_FRAGMENTS | OFFSET_MASK);
        let kind = self.load(offset::ICMP_TYPE, Size::Byte);
        let error = self.code.label();
        for wanted in [kind::UNREACHABLE, kind::TIME_EXCEEDED, kind::SOURCE_QUENCH, kind::REDIRECT] {
            self.code.branch(kind, Test::Equal, u32::from(wanted), error);
        }
        self.up_if(kind, Test::Differ, u32::from(kind::PARAMETER_PROBLEM));
        self.code.bind(error);
        // The packet ends where its header says.
        let total = self.code.load_number(self.ip + offset::TOTAL, Size::Half);
        self.up_if(total, Test::Less, offset::LEAST.cast_unsigned());
        let end = self.code.compute(Arithmetic::Add, total, i64::from(self.ip));
        self.code.branch_length(end, Some(self.up), Some(self.up));
        // For such a checksum, it would matter in which steps it is updated.
        let sum = self.load(offset::CHECKSUM, Size::Half);
        self.up_if(sum, Test::Equal, 0xffffu32);
        self.has_options(offset::QUOTE);
        self.up_if_common(offset::QUOTE + offset::FRAGMENT, OFFSET_MASK);
        let sender = self.load(offset::QUOTE + offset::SRC, Size::Word);
        let to = self.load(offset::DST, Size::Word);
        self.up_if(to, Test::Differ, sender);
        self.load(offset::QUOTE + offset::PROTOCOL, Size::Byte)
    }

    /// Rewrites an error whose quoted packet is of one kind, by the flows of a rewriter.
    fn rewrite(&mut self, quoted: Quoted, rewriter: u32, table: u8) {
        let entry = self.find(quoted, rewriter, table);
        let now = self.code.time();
        let last = self.code.load_entry(entry, at::LAST, Size::Double);
        let limit = self.code.load_entry(entry, at::LIMIT, Size::Double);
        let end = self.code.compute(Arithmetic::Add, last, limit);
        self.code.branch_wide(now, Test::AtLeast, end, self.up);
        if quoted.has_ports() {
            self.ports(quoted, entry);
        } else {
            self.ping(quoted, entry);
        }
        self.addresses(entry);
        self.annotate(entry);
        self.code.forget_present(self.ip + offset::QUOTE);
        self.code.next(0);
    }

    /// Looks up the flow by packets in the direction of the error.
    fn find(&mut self, quoted: Quoted, rewriter: u32, table: u8) -> Value {
        let sender = self.load(offset::QUOTE + offset::SRC, Size::Word);
        let receiver = self.load(offset::QUOTE + offset::DST, Size::Word);
        let mut key = vec![(Size::Word, receiver.into()), (Size::Word, sender.into())];
        let zero = Operand::Constant(0);
        if quoted.has_ports() {
            let source = self.load(offset::TRANSPORT, Size::Half);
            let destination = self.load(offset::TRANSPORT + 2, Size::Half);
            key.extend([(Size::Half, destination.into()), (Size::Half, source.into())]);
        } else {
            let id = self.load(offset::PING_ID, Size::Half);
            // Requests and replies with identifier 0 have the same key.
            self.up_if(id, Test::Equal, 0u32);
            let id = (Size::Half, id.into());
            let none = (Size::Half, zero);
            key.extend(if quoted == Quoted::EchoRequest { [none, id] } else { [id, none] });
        }
        key.push((Size::Word, Operand::Constant(table.into())));
        self.code.find_of(rewriter, 0, COPIES, &key, self.up)
    }

    /// Restores quoted ports, and the quoted checksum if there is one.
    fn ports(&mut self, quoted: Quoted, entry: Value) {
        let (mended, whole) = (self.code.label(), self.code.label());
        let change = self.code.load_entry(entry, at::TRANSPORT_CHANGE, Size::Half);
        let ip_change = self.code.load_entry(entry, at::IP_CHANGE, Size::Half);
        // Addresses are in no quoted word but those of the IP header, which has a checksum of its own. So the sum of the quoted words changes
        // as the mended checksum of the addresses does, or as the ports do if there is no checksum to mend.
        let sum = self.code.compute(Arithmetic::Xor, ip_change, 0xffffu32);
        let place = if quoted == Quoted::Tcp { offset::TCP_CHECKSUM } else { offset::UDP_CHECKSUM };
        let missing = self.code.label();
        self.code.need_at(self.ip, (place + 2).cast_unsigned(), missing);
        let old = self.load(place, Size::Half);
        if quoted == Quoted::Udp {
            self.code.branch(old, Test::Equal, 0u32, missing);
        }
        let new = changed(self.code, old, change);
        if quoted == Quoted::Udp {
            self.code.branch(new, Test::Differ, 0u32, whole);
            self.code.set(new, 0xffff);
            self.code.bind(whole);
        }
        self.store(place, Size::Half, new);
        self.code.jump(mended);
        self.code.bind(missing);
        self.code.compute_into(sum, Arithmetic::Add, sum, change);
        let high = self.code.compute(Arithmetic::ShiftRight, sum, 16u32);
        self.code.compute_into(sum, Arithmetic::And, sum, 0xffffu32);
        self.code.compute_into(sum, Arithmetic::Add, sum, high);
        self.code.bind(mended);
        self.message_checksum(sum);
        let source = self.code.load_entry(entry, at::PORTS + 2, Size::Half);
        self.store(offset::TRANSPORT, Size::Half, source);
        let destination = self.code.load_entry(entry, at::PORTS, Size::Half);
        self.store(offset::TRANSPORT + 2, Size::Half, destination);
    }

    /// Restores a quoted identifier, and the quoted checksum.
    fn ping(&mut self, quoted: Quoted, entry: Value) {
        let change = self.code.load_entry(entry, at::TRANSPORT_CHANGE, Size::Half);
        let old = self.load(offset::PING_CHECKSUM, Size::Half);
        let new = changed(self.code, old, change);
        // It depends on the rest of the message whether 0 is right.
        self.up_if(new, Test::Equal, 0u32);
        self.store(offset::PING_CHECKSUM, Size::Half, new);
        let at = if quoted == Quoted::EchoRequest { at::PORTS + 2 } else { at::PORTS };
        let id = self.code.load_entry(entry, at, Size::Half);
        self.store(offset::PING_ID, Size::Half, id);
        // The mended checksum balances the identifier.
        let sum = self.code.constant(0xffff);
        self.message_checksum(sum);
    }

    /// Updates the checksum of the ICMP message by the change of the quoted words, which is not 0: no change is 0xffff.
    fn message_checksum(&mut self, change: Value) {
        let old = self.load(offset::ICMP_CHECKSUM, Size::Half);
        let new = changed(self.code, old, change);
        self.store(offset::ICMP_CHECKSUM, Size::Half, new);
    }

    /// Restores the quoted addresses, and addresses the error to the sender of the quoted packet.
    fn addresses(&mut self, entry: Value) {
        let change = self.code.load_entry(entry, at::IP_CHANGE, Size::Half);
        let old = self.load(offset::QUOTE + offset::CHECKSUM, Size::Half);
        let new = changed(self.code, old, change);
        self.store(offset::QUOTE + offset::CHECKSUM, Size::Half, new);
        let receiver = self.load(offset::QUOTE + offset::DST, Size::Word);
        let source = self.load(offset::SRC, Size::Word);
        let other = self.code.label();
        self.code.branch(source, Test::Differ, receiver, other);
        // The receiver itself has sent the error.
        let known = self.code.load_entry(entry, at::ADDRS, Size::Word);
        self.code.update_checksum(self.ip + offset::CHECKSUM, Size::Word, source, known);
        self.store(offset::SRC, Size::Word, known);
        self.code.bind(other);
        let (old, to) =
            (self.load(offset::DST, Size::Word), self.code.load_entry(entry, at::ADDRS + 4, Size::Word));
        self.code.update_checksum(self.ip + offset::CHECKSUM, Size::Word, old, to);
        self.store(offset::DST, Size::Word, to);
        self.store(offset::QUOTE + offset::SRC, Size::Word, to);
        let known = self.code.load_entry(entry, at::ADDRS, Size::Word);
        self.store(offset::QUOTE + offset::DST, Size::Word, known);
        if self.dst_anno {
            self.code.set_annotation(anno::DST_IP, Size::Word, to);
        }
    }

    fn annotate(&mut self, entry: Value) {
        if let Some(at) = self.reply_anno {
            annotate_reply(self.code, entry, at);
        }
    }
}
