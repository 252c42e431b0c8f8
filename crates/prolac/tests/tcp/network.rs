// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts with a connection each, and a network between them, in simulated time.

use super::host::{BUFFER, Data, Glue, hex};
use castanet_prolac::interp::{Machine, Value};
use castanet_prolac::program::{ModuleId, Program};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The end of simulated time, in milliseconds.
const END: u64 = 4_000_000;

/// Percentages of segments that are lost, repeated and corrupted, and the largest additional delay in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: u64,
    pub repeat: u64,
    pub jitter: u64,
    pub corrupt: u64,
}

/// A host with one connection.
pub struct End<'a> {
    program: &'a Program,
    machine: Machine<'a>,
    pub data: Rc<RefCell<Data>>,
    modules: [ModuleId; 2],
    interface: Value,
    tcb: Value,
    sent: Vec<u8>,
    /// The bytes that the user has still to write.
    left: VecDeque<u8>,
    closed: bool,
}

impl<'a> End<'a> {
    pub fn new(program: &'a Program, seqno: u32, ports: [u64; 2], sent: Vec<u8>) -> End<'a> {
        let modules = ["Tcp-Interface", "Base.TCB"]
            .map(|name| ModuleId(program.modules.iter().position(|m| m.name == name).unwrap()));
        let data = Rc::new(RefCell::new(Data { seqno, ..Data::default() }));
        // The host lives as long as the test.
        let host: &'a mut Glue = Box::leak(Box::new(Glue(data.clone())));
        let mut machine = Machine::new(program, host, u64::MAX);
        let interface = machine.create(modules[0], Vec::new()).unwrap();
        let left = sent.iter().copied().collect();
        let mut end =
            End { program, machine, data, modules, interface, tcb: Value::Void, sent, left, closed: false };
        end.tcb = end.call("connection", ports.map(Value::Number).to_vec());
        end
    }

    fn call(&mut self, method: &str, args: Vec<Value>) -> Value {
        // Packet 0 is the one that came in.
        if self.machine.memory.packets.is_empty() {
            self.machine.memory.packets.push(Vec::new());
        }
        let numbers: String = args
            .iter()
            .filter(|a| matches!(a, Value::Number(_)))
            .map(|a| format!(" {}", a.number()))
            .collect();
        let packet = hex(&self.machine.memory.packets[0]);
        self.data.borrow_mut().trace.push_str(&format!("call {method}{numbers}={packet}\n"));
        let value =
            self.machine.call(self.modules[0], method, self.interface.clone(), args).unwrap().unwrap();
        self.machine.memory.packets.clear();
        self.check_invariants();
        value
    }

    /// Calls a method with the connection.
    pub fn tcp(&mut self, method: &str) -> Value {
        let tcb = self.tcb.clone();
        self.call(method, vec![tcb])
    }

    /// Calls a method with the connection and a number.
    pub fn tcp_with(&mut self, method: &str, n: u64) -> Value {
        let tcb = self.tcb.clone();
        self.call(method, vec![tcb, Value::Number(n)])
    }

    /// Gives an ICMP error to the connection: type, code, number and size of the segment, next-hop MTU. Returns its effect.
    pub fn icmp_error(&mut self, numbers: [u32; 5]) -> u64 {
        let numbers = numbers.map(|n| Value::Number(u64::from(n)));
        let args = [std::slice::from_ref(&self.tcb), &numbers[..]].concat();
        self.call("icmp-error", args).number()
    }

    /// Gives a segment to the connection, of whose IP packet the host says something: constants of the module TH.
    pub fn input_noted(&mut self, segment: Vec<u8>, packet: u64) {
        let (size, tcb) = (Value::Number(segment.len() as u64), self.tcb.clone());
        self.machine.memory.packets = vec![segment];
        self.call("input-noted", vec![tcb, Value::Bytes(0, 0), size, Value::Number(packet)]);
    }

    /// Gives a segment to the connection, or to none.
    pub fn input(&mut self, segment: Vec<u8>, stray: bool) {
        let size = Value::Number(segment.len() as u64);
        self.machine.memory.packets = vec![segment];
        if stray {
            self.call("stray", vec![Value::Bytes(0, 0), size]);
        } else {
            let tcb = self.tcb.clone();
            self.call("input", vec![tcb, Value::Bytes(0, 0), size]);
        }
    }

    /// Takes the segments that were sent, and whether their packets may be marked.
    pub fn take_out(&self) -> (Vec<Vec<u8>>, Vec<bool>) {
        let mut d = self.data.borrow_mut();
        (std::mem::take(&mut d.out), std::mem::take(&mut d.capable))
    }

    /// A field of the TCB that only an extension has, or 0.
    pub fn field_if(&mut self, name: &str) -> u32 {
        self.machine.field(self.modules[1], &self.tcb, name).map_or(0, |v| v.number() as u32)
    }

    /// A field of the TCB.
    pub fn field(&mut self, name: &str) -> u32 {
        self.machine.field(self.modules[1], &self.tcb, name).unwrap().number() as u32
    }

    /// The value of a method of the TCB, as a module has it.
    pub fn ask(&mut self, module: &str, method: &str, numbers: &[u32]) -> u32 {
        let module = self.program.modules.iter().position(|m| m.name == module).unwrap();
        let numbers = numbers.iter().map(|n| Value::Number(u64::from(*n))).collect();
        let value = self.machine.call(ModuleId(module), method, self.tcb.clone(), numbers).unwrap().unwrap();
        value.number() as u32
    }

    /// The number of objects of a module.
    pub fn live(&self, module: &str) -> usize {
        let module = self.program.modules.iter().find(|m| m.name == module).unwrap();
        self.machine.memory.live(module.root)
    }

    pub fn trace(&self) -> String {
        self.data.borrow().trace.clone()
    }

    /// INVARIANT: the numbers of the send sequence space keep their order.
    fn check_invariants(&mut self) {
        if self.tcb == Value::Void || self.field("state") < 2 {
            return;
        }
        let [una, next, max, left] = ["snd_una", "snd_next", "snd_max", "buffer_left"].map(|f| self.field(f));
        let upto = |a: u32, b: u32| b.wrapping_sub(a) < 1 << 31;
        assert!(upto(una, next) && upto(next, max), "{una} <= {next} <= {max}");
        // The SYN is before the data in the buffer, and the FIN after it.
        let queued = self.data.borrow().send.len() as u32;
        assert!(upto(left.wrapping_sub(1), una), "{left} - 1 <= {una}");
        let end = left.wrapping_add(queued).wrapping_add(1);
        assert!(upto(max, end), "{max} <= {left} + {queued} + 1");
        // Urgent data is not before what is acknowledged, so that the comparison stays right.
        let up = self.field("snd_up");
        assert!(upto(una, up) && upto(up, end), "{una} <= {up} <= {end}");
        assert!(self.field("held-count") <= 64);
    }
}

/// Two ends and the segments between them.
pub struct Network<'a> {
    pub ends: Vec<End<'a>>,
    /// The segments on their way, by the time of arrival.
    way: BTreeMap<(u64, u64), (usize, Vec<u8>, u64)>,
    faults: Faults,
    random: u64,
    now: u64,
    count: u64,
    /// The number of segments that were corrupted.
    pub corrupted: u64,
    /// Whether segments of the first end come along a source route now and then.
    routed: bool,
    /// The segments whose packets might have been marked, and those that were.
    pub capable: u64,
    pub marked: u64,
    /// The segments that came along a route.
    pub along: u64,
}

/// The host's notes on a packet: the constants of the module TH.
pub const MARKED: u64 = 256;
pub const ROUTED: u64 = 512;

impl<'a> Network<'a> {
    pub fn new(program: &'a Program, seed: u64, faults: Faults, sizes: [usize; 2]) -> Network<'a> {
        let mut n = Network {
            ends: Vec::new(),
            way: BTreeMap::new(),
            faults,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: 0,
            count: 0,
            corrupted: 0,
            routed: program.modules.iter().any(|m| m.name == "Source-Route.TCB"),
            capable: 0,
            marked: 0,
            along: 0,
        };
        for (size, ports) in sizes.into_iter().zip([[1000, 80], [80, 1000]]) {
            let seqno = n.number() as u32 | 0xffff_f000;
            let sent: Vec<u8> = (0..size).map(|_| n.number() as u8).collect();
            n.ends.push(End::new(program, seqno, ports, sent));
        }
        if program.modules.iter().any(|m| m.name == "Ecn.TCB") {
            n.ends[0].tcp_with("use-ecn", 1);
            n.ends[1].tcp_with("use-ecn", 0);
        }
        n
    }

    fn number(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    /// Calls a method with the connection of an end.
    fn tcp(&mut self, end: usize, method: &str) {
        self.ends[end].tcp(method);
        self.flush(end);
    }

    /// Puts the segments of an end on their way.
    fn flush(&mut self, end: usize) {
        let (out, capable) = self.ends[end].take_out();
        for (segment, capable) in out.into_iter().zip(capable) {
            self.send(1 - end, segment, capable);
        }
    }

    fn send(&mut self, to: usize, segment: Vec<u8>, capable: bool) {
        self.capable += u64::from(capable);
        // An exchange has about a dozen segments with data.
        let marked = capable && self.number() % 100 < 30;
        let along = self.routed && to == 1 && self.number() % 100 < 20;
        self.marked += u64::from(marked);
        self.along += u64::from(along);
        let notes = if marked { MARKED } else { 0 } | if along { ROUTED } else { 0 };
        let copies = 1 + usize::from(self.number() % 100 < self.faults.repeat);
        for _ in 0..copies {
            if self.number() % 100 < self.faults.loss {
                continue;
            }
            let mut segment = segment.clone();
            if self.number() % 100 < self.faults.corrupt {
                // The checksum sees every change of less than 16 bits in a row.
                let (at, bits) = (self.number() as usize % segment.len(), 1 + self.number() as u8 % 255);
                segment[at] ^= bits;
                self.corrupted += 1;
            }
            let at = self.now + 10 + self.number() % (self.faults.jitter + 1);
            self.count += 1;
            self.way.insert((at, self.count), (to, segment, notes));
        }
    }

    /// The user of an end reads, writes and closes.
    fn user(&mut self, end: usize) {
        let e = &mut self.ends[end];
        let mut d = e.data.borrow_mut();
        let waiting = std::mem::take(&mut d.waiting);
        let read = !waiting.is_empty();
        d.read.extend(waiting);
        let n = BUFFER.saturating_sub(d.send.len()).min(e.left.len());
        d.send.extend(e.left.drain(..n));
        let close = d.connected && e.left.is_empty() && !e.closed;
        e.closed |= close;
        drop(d);
        if close {
            self.tcp(end, "close");
        } else if n > 0 || read {
            self.tcp(end, "output");
        }
    }

    pub fn run(&mut self) {
        self.tcp(1, "listen");
        self.tcp(0, "connect");
        let done = |e: &End<'_>| e.data.borrow().disconnected.is_some();
        while self.now < END && !self.ends.iter().all(done) {
            self.now += 10;
            self.ends.iter().for_each(|e| e.data.borrow_mut().clock = self.now);
            while let Some(first) = self.way.first_entry().filter(|f| f.key().0 <= self.now) {
                let (to, segment, notes) = first.remove();
                if notes == 0 {
                    self.ends[to].input(segment, false);
                } else {
                    // The route is not always the same.
                    self.ends[to].data.borrow_mut().route = 12 + self.now % 3 * 4;
                    self.ends[to].input_noted(segment, notes);
                }
                self.flush(to);
            }
            for end in 0..2 {
                if self.now.is_multiple_of(500) {
                    self.tcp(end, "slow-timeout");
                }
                if self.now.is_multiple_of(200) {
                    self.tcp(end, "fast-timeout");
                }
                // The second user is slow, so that its window closes.
                if end == 0 || self.now.is_multiple_of(1_700) {
                    self.user(end);
                }
            }
        }
    }

    /// The calls of the TCP of an end, and its calls of the host.
    pub fn trace(&self, end: usize) -> String {
        self.ends[end].trace()
    }

    pub fn check(&self) {
        for end in 0..2 {
            let (d, other) = (self.ends[end].data.borrow(), &self.ends[1 - end].sent);
            let read = [d.read.clone(), d.waiting.clone()].concat();
            let what = format!(
                "{:?}: end {end}, {} of {} bytes, ended {:?} and {:?} after {} ms",
                self.faults,
                read.len(),
                other.len(),
                d.disconnected,
                self.ends[1 - end].data.borrow().disconnected,
                self.now
            );
            assert!(
                read == *other,
                "{what}: other bytes at {:?}",
                read.iter().zip(other).position(|(a, b)| a != b)
            );
            assert!(d.connected && d.end_of_data, "{what}: {} {}", d.connected, d.end_of_data);
            assert_eq!(d.disconnected, Some(0), "{what}");
            assert!(d.held.iter().all(Option::is_none), "{what}");
        }
    }
}
