// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hand-written XDP forwarder: what the IP router does on its usual path, for two interfaces, in as few instructions as we
//! know. All other packets are left to the host.

use super::assembler::{Assembler, Label};
use castanet_kernel::Instruction;
use castanet_kernel::instruction::{code, helper};

/// Results of XDP programs.
const DROP: i32 = 1;
const PASS: i32 = 2;
/// The number of the map from IP addresses, in network order, to Ethernet headers.
const NEXT_HOPS: i32 = 0;
/// The number of the map of devices.
const DEVICES: i32 = 1;
/// The length of the Ethernet headers in the map, with padding.
pub const VALUE: usize = 16;
/// Offsets in the frame.
const ETHER_TYPE: i16 = 12;
const IP: i16 = 14;
const LENGTH: i16 = IP + 2;
/// The TTL, the protocol, and the checksum.
const TTL: i16 = IP + 8;
const SOURCE: i16 = IP + 12;
const DESTINATION: i16 = IP + 16;
const END: i32 = 34;
/// Registers. Calls keep those from 6 on.
const CONTEXT: u8 = 1;
const TTL_WORD: u8 = 6;
const FRAME: u8 = 7;
const FRAME_END: u8 = 8;
const STACK: u8 = 10;

/// The value of the map of next hops: an Ethernet header for IPv4.
pub fn header(to: [u8; 6], from: [u8; 6]) -> [u8; VALUE] {
    let mut all = [0; VALUE];
    let bytes = to.into_iter().chain(from).chain([8, 0]);
    all.iter_mut().zip(bytes).for_each(|(place, b)| *place = b);
    all
}

/// A program that drops all frames.
pub fn drop_all() -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.exit(DROP);
    a.end()
}

/// A router with two interfaces, as its program for the first sees it.
#[derive(Clone, Copy, Debug)]
pub struct Router {
    /// The Ethernet address of the interface.
    pub ether: [u8; 6],
    /// The IP address and the prefix length of both interfaces.
    pub addresses: [(u32, u32); 2],
    /// The MTU of the second interface.
    pub mtu: u16,
}

impl Router {
    /// The router between the devices of a pair of interfaces, of which the first has this Ethernet address.
    ///
    /// # Errors
    /// Never.
    pub fn of_pair(pair: usize, ether: [u8; 6]) -> Result<Router, String> {
        Ok(Router { ether, addresses: super::addresses(pair)?, mtu: 1500 })
    }

    /// The program.
    pub fn program(&self) -> Vec<Instruction> {
        let mut a = Assembler::default();
        let (drop, pass) = (a.label(), a.label());
        a.load(code::W, FRAME, CONTEXT, 0);
        a.load(code::W, FRAME_END, CONTEXT, 4);
        a.register(code::MOV, 2, FRAME);
        a.constant(code::ADD, 2, END);
        a.jump_register(code::JGT, 2, FRAME_END, pass);
        self.check_ether(&mut a, pass);
        self.check_length(&mut a, drop, pass);
        check_sum(&mut a, drop);
        self.check_source(&mut a, drop);
        self.route(&mut a, drop, pass);
        // RFC 1812, 5.3.1: packets with a TTL of at most 1 are not forwarded.
        a.load(code::W, TTL_WORD, FRAME, TTL);
        let live = a.label();
        a.jump(code::JSET, TTL_WORD, u32::from_ne_bytes([0xfe, 0, 0, 0]), live);
        a.go(pass);
        a.place(live);
        // The next hop.
        a.load(code::W, 1, FRAME, DESTINATION);
        a.store(code::W, STACK, -4, 1);
        a.map(1, NEXT_HOPS);
        a.register(code::MOV, 2, STACK);
        a.constant(code::ADD, 2, -4);
        a.call(helper::MAP_LOOKUP);
        a.jump_null(0, pass);
        decrease_ttl(&mut a);
        for (size, at) in [(code::DW, 0), (code::W, 8), (code::H, 12)] {
            a.load(size, 1, 0, at);
            a.store(size, FRAME, at, 1);
        }
        a.map(1, DEVICES);
        a.constant(code::MOV, 2, 1);
        a.constant(code::MOV, 3, DROP);
        a.call(helper::REDIRECT_MAP);
        a.put(code::EXIT, 0, 0, 0, 0);
        a.place(drop);
        a.exit(DROP);
        a.place(pass);
        a.exit(PASS);
        a.end()
    }

    /// Passes on frames that are not for the interface, or not IPv4.
    fn check_ether(&self, a: &mut Assembler, pass: Label) {
        let [e0, e1, e2, e3, e4, e5] = self.ether;
        a.load(code::W, 1, FRAME, 0);
        a.jump(code::JNE, 1, u32::from_ne_bytes([e0, e1, e2, e3]), pass);
        a.load(code::H, 1, FRAME, 4);
        a.jump(code::JNE, 1, u16::from_ne_bytes([e4, e5]).into(), pass);
        a.load(code::H, 1, FRAME, ETHER_TYPE);
        a.jump(code::JNE, 1, u16::from_ne_bytes([8, 0]).into(), pass);
    }

    /// Checks version, header length and total length (RFC 1812, 5.2.2), and the MTU. Headers with options are not usual.
    fn check_length(&self, a: &mut Assembler, drop: Label, pass: Label) {
        a.load(code::B, 1, FRAME, IP);
        a.jump(code::JNE, 1, 0x45, pass);
        load_big(a, code::H, 1, LENGTH);
        a.jump(code::JLT, 1, 20, drop);
        a.jump(code::JGT, 1, self.mtu.into(), pass);
        // The packet must not be longer than the frame.
        a.register(code::MOV, 2, FRAME);
        a.register(code::ADD, 2, 1);
        a.constant(code::ADD, 2, IP.into());
        a.jump_register(code::JGT, 2, FRAME_END, drop);
    }

    /// Drops packets from addresses that no host has (RFC 1812, 5.3.7), and from broadcast addresses of the interfaces.
    fn check_source(&self, a: &mut Assembler, drop: Label) {
        load_big(a, code::W, 1, SOURCE);
        a.jump(code::JGE, 1, 0xe000_0000, drop);
        for (address, length) in self.addresses {
            a.jump(code::JEQ, 1, broadcast(address, length), drop);
        }
        a.constant(code::RSH, 1, 24);
        a.jump(code::JEQ, 1, 0, drop);
        a.jump(code::JEQ, 1, 127, drop);
    }

    /// Finds the interface. Packets to the router, and those that would leave where they came in, are not usual.
    fn route(&self, a: &mut Assembler, drop: Label, pass: Label) {
        load_big(a, code::W, 1, DESTINATION);
        for (address, length) in self.addresses {
            a.jump(code::JEQ, 1, address, pass);
            a.jump(code::JEQ, 1, broadcast(address, length), drop);
        }
        let [_, (address, length)] = self.addresses;
        a.constant(code::RSH, 1, 32 - length.cast_signed());
        a.jump(code::JNE, 1, address.checked_shr(32 - length).unwrap_or(0), pass);
    }
}

fn broadcast(address: u32, length: u32) -> u32 {
    address | u32::MAX.checked_shr(length).unwrap_or(0)
}

/// Loads a number in network order.
fn load_big(a: &mut Assembler, size: u8, to: u8, at: i16) {
    a.load(size, to, FRAME, at);
    let bits = if size == code::H { 16 } else { 32 };
    a.put(code::ALU | code::END | code::REGISTER, to, 0, 0, bits);
}

/// Drops packets with a wrong header checksum (RFC 1071): the sum of the header must be -0.
fn check_sum(a: &mut Assembler, drop: Label) {
    a.load(code::W, 1, FRAME, IP);
    for at in [4, 8, 12, 16] {
        a.load(code::W, 2, FRAME, IP + at);
        a.register(code::ADD, 1, 2);
    }
    // A sum of five words has 35 bits: after one fold it has 20, and after two it is at most 0x1000e. Only one multiple of 0xffff
    // is in that range, besides 0.
    for _ in 0..2 {
        a.register(code::MOV, 2, 1);
        a.constant(code::RSH, 2, 16);
        a.constant(code::AND, 1, 0xffff);
        a.register(code::ADD, 1, 2);
    }
    a.jump(code::JNE, 1, 0xffff, drop);
}

/// Decreases the TTL and the checksum with it (RFC 1624). Both are in one word: the TTL is its lowest byte, and the checksum, in
/// which the same step is an addition, its upper half. This is for little-endian processors.
fn decrease_ttl(a: &mut Assembler) {
    let no_carry = a.label();
    a.jump(code::JLT, TTL_WORD, 0xffff_0000, no_carry);
    a.constant(code::ADD, TTL_WORD, 0x1_0000);
    a.place(no_carry);
    a.constant(code::ADD, TTL_WORD, 0xffff);
    a.store(code::W, FRAME, TTL, TTL_WORD);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_kernel::interpreter::{Frame, Machine, Map, REDIRECT};
    use castanet_wire::Ipv4Header;

    const MINE: [u8; 6] = [2, 0, 0, 1, 1, 1];
    const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 0xff];
    const OTHER: [u8; 6] = [2, 0, 0, 1, 2, 1];

    fn machine() -> Machine {
        let mut hops = Map::hash(16, 4, VALUE);
        hops.set(&[10, 0, 1, 2], &header(NEXT, OTHER)).unwrap();
        let mut devices = Map::devices(2);
        devices.set(&0u32.to_ne_bytes(), &[1, 0, 0, 0]).unwrap();
        devices.set(&1u32.to_ne_bytes(), &[2, 0, 0, 0]).unwrap();
        Machine { maps: vec![hops, devices], ..Machine::default() }
    }

    fn frame(change: impl FnOnce(&mut Ipv4Header)) -> Vec<u8> {
        let mut ip = Ipv4Header::new(17, 0x0a00_0002, 0x0a00_0102, 46, 64);
        change(&mut ip);
        ip.set_checksum20();
        let mut all = [&MINE[..], &[2, 0, 0, 1, 1, 2, 8, 0], &ip.to_bytes()].concat();
        all.resize(60, 7);
        all
    }

    #[test]
    fn usual_packets_are_forwarded() {
        let program = Router::of_pair(1, MINE).unwrap().program();
        for ttl in [2, 64, 255] {
            // Each id gives another checksum, among them the ones with a carry.
            for id in (0..=0xffff).step_by(251).chain([0xfffe, 0xffff]) {
                let sent = frame(|ip| {
                    ip.ttl = ttl;
                    ip.id.set(id);
                });
                let mut f = Frame::new(&sent);
                let run = machine().run(&program, &mut f).unwrap();
                assert_eq!((run.result, run.redirect), (REDIRECT, Some((DEVICES as usize, 1))));
                let mut want = sent;
                want[..14].copy_from_slice(&header(NEXT, OTHER)[..14]);
                assert!(Ipv4Header::checked(&f.data()[14..], true).is_ok(), "id {id}");
                want[22] -= 1;
                want[24..26].copy_from_slice(&f.data()[24..26]);
                assert_eq!(f.data(), want);
            }
        }
    }

    #[test]
    fn all_others_are_not() {
        let program = Router::of_pair(1, MINE).unwrap().program();
        let ip = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().to_bits();
        let to = |text: &str| frame(|h| h.dst.set(ip(text)));
        let from = |text: &str| frame(|h| h.src.set(ip(text)));
        let with = |at: usize, byte: u8| {
            let mut f = frame(|_| ());
            f[at] = byte;
            f
        };
        for (what, bytes, result) in [
            ("short", frame(|_| ())[..33].to_vec(), PASS),
            ("another station", with(5, 9), PASS),
            ("ARP", with(13, 6), PASS),
            ("options", with(14, 0x46), PASS),
            ("version 6", with(14, 0x65), PASS),
            ("bad checksum", with(24, 0), DROP),
            ("too long", frame(|h| h.total_len.set(47)), DROP),
            ("too short", frame(|h| h.total_len.set(19)), DROP),
            ("TTL 1", frame(|h| h.ttl = 1), PASS),
            ("TTL 0", frame(|h| h.ttl = 0), PASS),
            ("to the router", to("10.0.1.1"), PASS),
            ("to a broadcast address", to("10.0.1.255"), DROP),
            ("back", to("10.0.0.9"), PASS),
            ("no route", to("10.0.2.2"), PASS),
            ("unknown next hop", to("10.0.1.3"), PASS),
            ("from a group", from("224.0.0.1"), DROP),
            ("from everybody", from("255.255.255.255"), DROP),
            ("from network 0", from("0.0.0.1"), DROP),
            ("from loopback", from("127.0.0.1"), DROP),
            ("from a broadcast address", from("10.0.0.255"), DROP),
        ] {
            let mut f = Frame::new(&bytes);
            let run = machine().run(&program, &mut f).unwrap();
            assert_eq!(run.result.cast_signed(), result, "{what}");
            assert_eq!(f.data(), bytes, "{what}");
        }
        let run = machine().run(&drop_all(), &mut Frame::new(&[0; 60])).unwrap();
        assert_eq!((run.result.cast_signed(), run.executed), (DROP, 2));
    }
}
