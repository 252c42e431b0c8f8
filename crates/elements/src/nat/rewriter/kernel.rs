// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rewriters in the kernel: programs rewrite packets of flows that have been copied to the kernel. All other packets go up.

use super::{Rewriter, RewriterArgs};
use crate::nat::flow::RewriterKind;
use crate::nat::header::Family;
use crate::nat::store::copies::{COPIES, at};
use castanet_element::kernel::{Arithmetic, Code, Label, Lowered, Operand, Size, Test, Value};
use castanet_element::{Attached, InKernel};
use castanet_spec::anno;
use castanet_wire::tcp::flag;
use castanet_wire::{icmp, ipv4::protocol};

/// Offsets in an IP header without options, and in what follows it.
mod offset {
    pub const TOTAL: i32 = 2;
    pub const FRAGMENT: i32 = 6;
    pub const PROTOCOL: i32 = 9;
    pub const CHECKSUM: i32 = 10;
    pub const ADDRS: i32 = 12;
    pub const DST: i32 = 16;
    /// The ports of TCP and UDP, and the type of an ICMP message.
    pub const TRANSPORT: i32 = 20;
    pub const ICMP_CHECKSUM: i32 = 22;
    pub const ICMP_ID: i32 = 24;
    pub const UDP_CHECKSUM: i32 = 26;
    pub const TCP_FLAGS: i32 = 33;
    pub const TCP_CHECKSUM: i32 = 36;
}

/// The parts of a packet that a rewriter changes, besides addresses and the checksum of the IP header.
#[derive(Clone, Copy)]
struct Parts {
    /// The transport checksum, if it changes.
    checksum: Option<Checksum>,
    /// The ports, or the identifier of a ping.
    ports: Ports,
    /// The addresses that change.
    addresses: Addresses,
}

#[derive(Clone, Copy, PartialEq)]
enum Checksum {
    Tcp,
    /// 0 means that there is no checksum.
    Udp,
    Icmp,
}

#[derive(Clone, Copy, PartialEq)]
enum Ports {
    None,
    Both,
    /// The identifier of an echo request.
    Request,
    /// The identifier of an echo reply.
    Reply,
}

#[derive(Clone, Copy, PartialEq)]
enum Addresses {
    Both,
    Source,
    Destination,
}

/// Returns a checksum after a change, as `tuple::changed` does.
pub fn changed(code: &mut Code<'_>, old: Value, change: Value) -> Value {
    let sum = code.compute(Arithmetic::Xor, old, 0xffffu32);
    code.compute_into(sum, Arithmetic::Add, sum, change);
    let high = code.compute(Arithmetic::ShiftRight, sum, 16u32);
    code.compute_into(sum, Arithmetic::And, sum, 0xffffu32);
    code.compute_into(sum, Arithmetic::Add, sum, high);
    code.compute_into(sum, Arithmetic::Xor, sum, 0xffffu32);
    sum
}

/// The code of a rewriter.
struct Lowering<'a, 'b> {
    code: &'a mut Code<'b>,
    kind: RewriterKind,
    /// The offset of the IP header from the start of the packet.
    ip: i32,
    /// Where packets go up.
    up: Label,
    outputs: usize,
    dst_anno: bool,
    reply_anno: Option<usize>,
}

impl<A: RewriterArgs> InKernel for Rewriter<A> {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Some((ip, 20)) = code.network() else {
            return Err("packets reach it without a marked IP header".into());
        };
        let up = code.label();
        let Rewriter { kind, outputs, dst_anno, reply_anno, .. } = *self;
        let mut lowering = Lowering { code, kind, ip, up, outputs, dst_anno, reply_anno };
        let protocol = lowering.begin();
        match kind {
            RewriterKind::Ports | RewriterKind::AnyPorts => {
                lowering.ports(protocol, A::Family::TCP, A::Family::UDP);
            }
            RewriterKind::Ping => lowering.ping(protocol),
            RewriterKind::Addr | RewriterKind::Pair => lowering.addresses(protocol),
        }
        code.bind(up);
        code.up();
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let (Attached::Table(_, table), Some(link)) = (to, self.handle.linked()) {
            link.store().set_copies(link.space, table);
            self.copies = true;
        }
    }
}

impl Lowering<'_, '_> {
    fn load(&mut self, offset: i32, size: Size) -> Value {
        self.code.load(self.ip + offset, size)
    }
    fn up_if(&mut self, value: Value, test: Test, n: u32) {
        self.code.branch(value, test, n, self.up);
    }
    fn need(&mut self, length: i32) {
        self.code.need_at(self.ip, length.cast_unsigned(), self.up);
    }

    /// Lets packets with IP options and fragments go up. Returns the protocol.
    fn begin(&mut self) -> Value {
        let (has_ports, fragment) = (self.kind.has_ports(), 0x3fffu16);
        self.need(if has_ports { 28 } else { 20 });
        let first = self.load(0, Size::Byte);
        let length = self.code.compute(Arithmetic::And, first, 15u32);
        self.up_if(length, Test::Differ, 5);
        let offset = self.load(offset::FRAGMENT, Size::Half);
        self.up_if(offset, Test::Common, u16::from_ne_bytes(fragment.to_be_bytes()).into());
        if has_ports {
            let total = self.code.load_number(self.ip + offset::TOTAL, Size::Half);
            self.up_if(total, Test::Less, 28);
        }
        self.load(offset::PROTOCOL, Size::Byte)
    }

    /// The code of rewriters of TCP and UDP ports.
    fn ports(&mut self, protocol: Value, tcp: bool, udp: bool) {
        let both =
            |checksum| Parts { checksum: Some(checksum), ports: Ports::Both, addresses: Addresses::Both };
        if tcp {
            let other = self.code.label();
            self.code.branch(protocol, Test::Differ, u32::from(protocol::TCP), other);
            // The whole header.
            self.need(40);
            let flags = self.load(offset::TCP_FLAGS, Size::Byte);
            let special =
                self.code.compute(Arithmetic::And, flags, u32::from(flag::SYN | flag::FIN | flag::RST));
            self.known(protocol::TCP, both(Checksum::Tcp), Some(special));
            self.code.bind(other);
        }
        if udp {
            self.up_if(protocol, Test::Differ, protocol::UDP.into());
            self.known(protocol::UDP, both(Checksum::Udp), None);
        } else {
            self.code.jump(self.up);
        }
    }

    /// The code of rewriters of pings.
    fn ping(&mut self, protocol: Value) {
        self.up_if(protocol, Test::Differ, protocol::ICMP.into());
        let kind = self.load(offset::TRANSPORT, Size::Byte);
        let reply = self.code.label();
        let parts = |ports| Parts { checksum: Some(Checksum::Icmp), ports, addresses: Addresses::Both };
        self.code.branch(kind, Test::Differ, u32::from(icmp::kind::ECHO), reply);
        self.known(0, parts(Ports::Request), None);
        self.code.bind(reply);
        self.up_if(kind, Test::Differ, icmp::kind::ECHO_REPLY.into());
        self.known(0, parts(Ports::Reply), None);
    }

    /// The code of rewriters of addresses alone.
    fn addresses(&mut self, protocol: Value) {
        for other in [protocol::DCCP, protocol::UDP_LITE] {
            self.up_if(protocol, Test::Equal, other.into());
        }
        let checksums = [
            (protocol::TCP, Checksum::Tcp, offset::TCP_CHECKSUM + 2),
            (protocol::UDP, Checksum::Udp, offset::UDP_CHECKSUM + 2),
        ];
        for (number, checksum, length) in checksums {
            let other = self.code.label();
            self.code.branch(protocol, Test::Differ, u32::from(number), other);
            self.need(length);
            self.by_addresses(Some(checksum));
            self.code.bind(other);
        }
        // New addresses change no checksum of ICMP.
        self.by_addresses(None);
    }

    fn by_addresses(&mut self, checksum: Option<Checksum>) {
        let parts = |addresses| Parts { checksum, ports: Ports::None, addresses };
        if self.kind == RewriterKind::Pair {
            return self.known(0, parts(Addresses::Both), None);
        }
        // The kernel knows all flows, so a packet without a forward flow may be a reply.
        let reply = self.code.label();
        let zero = Operand::Constant(0);
        let source = self.load(offset::ADDRS, Size::Word);
        let key = [(Size::Word, source.into()), (Size::Word, zero), (Size::Double, zero)];
        let entry = self.code.look_up(0, COPIES, &key, reply);
        self.rewrite(entry, parts(Addresses::Source));
        self.code.bind(reply);
        let destination = self.load(offset::DST, Size::Word);
        let key = [(Size::Word, zero), (Size::Word, destination.into()), (Size::Double, zero)];
        let entry = self.code.look_up(0, COPIES, &key, self.up);
        self.rewrite(entry, parts(Addresses::Destination));
    }

    /// Rewrites packets of known flows, found by addresses, ports and protocol. Packets for which `special` is not 0 go up.
    fn known(&mut self, protocol: u8, parts: Parts, special: Option<Value>) {
        let addrs = self.load(offset::ADDRS, Size::Double);
        let zero = Operand::Constant(0);
        let mut key = vec![(Size::Double, addrs.into())];
        match parts.ports {
            Ports::None => key.push((Size::Word, zero)),
            Ports::Both => key.push((Size::Word, self.load(offset::TRANSPORT, Size::Word).into())),
            Ports::Request => {
                key.extend([(Size::Half, self.load(offset::ICMP_ID, Size::Half).into()), (Size::Half, zero)]);
            }
            Ports::Reply => {
                key.extend([(Size::Half, zero), (Size::Half, self.load(offset::ICMP_ID, Size::Half).into())]);
            }
        }
        key.push((Size::Word, Operand::Constant(self.kind.table(protocol).into())));
        let entry = self.code.find(0, COPIES, &key, self.up);
        if let Some(special) = special {
            let usual = self.code.label();
            self.code.branch(special, Test::Equal, 0u32, usual);
            self.code.up_in_order(entry, COPIES);
            self.code.bind(usual);
        }
        self.code.wait_for(entry, COPIES);
        self.rewrite(entry, parts);
    }

    fn rewrite(&mut self, entry: Value, parts: Parts) {
        let back = self.code.label();
        if matches!(parts.ports, Ports::Request | Ports::Reply) {
            // Requests and replies with identifier 0 have the same key.
            let reply = self.code.load_entry(entry, at::REPLY, Size::Byte);
            self.code.branch(reply, Test::Differ, u32::from(parts.ports == Ports::Reply), back);
        }
        let time = self.code.time();
        let last = self.code.load_entry(entry, at::LAST, Size::Double);
        let limit = self.code.load_entry(entry, at::LIMIT, Size::Double);
        let end = self.code.compute(Arithmetic::Add, last, limit);
        self.code.branch_wide(time, Test::AtLeast, end, back);
        self.transport_checksum(entry, parts.checksum, back);
        // From here on, the packet does not go up here, so this is the time of a packet that was rewritten.
        self.code.store_entry(entry, at::LAST, Size::Double, time);
        let old = self.load(offset::CHECKSUM, Size::Half);
        let change = self.code.load_entry(entry, at::IP_CHANGE, Size::Half);
        let new = changed(self.code, old, change);
        self.code.store(self.ip + offset::CHECKSUM, Size::Half, new);
        let (place, part, size) = match parts.addresses {
            Addresses::Both => (offset::ADDRS, at::ADDRS, Size::Double),
            Addresses::Source => (offset::ADDRS, at::ADDRS, Size::Word),
            Addresses::Destination => (offset::DST, at::ADDRS + 4, Size::Word),
        };
        self.copy(entry, part, place, size);
        match parts.ports {
            Ports::None => {}
            Ports::Both => self.copy(entry, at::PORTS, offset::TRANSPORT, Size::Word),
            Ports::Request => self.copy(entry, at::PORTS, offset::ICMP_ID, Size::Half),
            Ports::Reply => self.copy(entry, at::PORTS + 2, offset::ICMP_ID, Size::Half),
        }
        self.annotate(entry);
        let out = self.code.load_entry(entry, at::OUT, Size::Half);
        self.code.next_of(out, self.outputs);
        self.code.bind(back);
        self.code.up_in_order(entry, COPIES);
    }

    /// Copies bytes of an entry into the packet.
    fn copy(&mut self, entry: Value, from: i32, to: i32, size: Size) {
        let part = self.code.load_entry(entry, from, size);
        self.code.store(self.ip + to, size, part);
    }

    fn transport_checksum(&mut self, entry: Value, checksum: Option<Checksum>, back: Label) {
        let place = match checksum {
            None => return,
            Some(Checksum::Tcp) => offset::TCP_CHECKSUM,
            Some(Checksum::Udp) => offset::UDP_CHECKSUM,
            Some(Checksum::Icmp) => offset::ICMP_CHECKSUM,
        };
        let none = self.code.label();
        let old = self.load(place, Size::Half);
        if checksum == Some(Checksum::Udp) {
            self.code.branch(old, Test::Equal, 0u32, none);
        }
        let change = self.code.load_entry(entry, at::TRANSPORT_CHANGE, Size::Half);
        let new = changed(self.code, old, change);
        match checksum {
            // It depends on the rest of the message whether 0 is right.
            Some(Checksum::Icmp) => self.code.branch(new, Test::Equal, 0u32, back),
            Some(Checksum::Udp) => {
                let right = self.code.label();
                self.code.branch(new, Test::Differ, 0u32, right);
                self.code.set(new, 0xffff);
                self.code.bind(right);
            }
            _ => {}
        }
        self.code.store(self.ip + place, Size::Half, new);
        self.code.bind(none);
    }

    fn annotate(&mut self, entry: Value) {
        if self.dst_anno {
            let to = self.load(offset::DST, Size::Word);
            self.code.set_annotation(anno::DST_IP, Size::Word, to);
        }
        if let Some(at) = self.reply_anno {
            annotate_reply(self.code, entry, at);
        }
    }
}

/// Sets the annotation of packets in the reply direction, whose copies of flows say so.
pub(in crate::nat) fn annotate_reply(code: &mut Code<'_>, entry: Value, at_anno: usize) {
    let before = code.annotation(at_anno, Size::Byte);
    let value = code.compute(Arithmetic::Or, before, 0u32);
    let forward = code.label();
    let reply = code.load_entry(entry, at::REPLY, Size::Byte);
    code.branch(reply, Test::Equal, 0u32, forward);
    let own = code.load_entry(entry, at::ANNO, Size::Byte);
    code.compute_into(value, Arithmetic::Or, own, 0u32);
    code.bind(forward);
    code.set_annotation(at_anno, Size::Byte, value);
}
