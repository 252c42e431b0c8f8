// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host of a TCP: the data of a connection, and the functions that the TCP calls.

use castanet_prolac::interp::{Host, Memory, Value};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The largest segment.
const MTU: usize = 1500;
/// The receive buffer of a host, whose user reads late.
pub const BUFFER: usize = 8_000;
/// The data of a host's connection.
#[derive(Default)]
pub struct Data {
    pub send: VecDeque<u8>,
    /// The bytes that the user has read, and those that wait for the user.
    pub read: Vec<u8>,
    pub waiting: Vec<u8>,
    pub held: Vec<Option<Vec<u8>>>,
    pub out: Vec<Vec<u8>>,
    /// Whether the packet of each of these segments may be marked.
    pub capable: Vec<bool>,
    /// The same of the next one.
    pub may_be_marked: bool,
    /// The length of the IP options of the way back along the route of the packet that has arrived.
    pub route: u64,
    pub connected: bool,
    /// How often the user was told that the peer does not answer.
    pub unanswered: usize,
    pub end_of_data: bool,
    /// The numbers of urgent bytes that the user was told of.
    pub urgent: Vec<u64>,
    /// Where they end in what is delivered.
    pub urgent_ends: Vec<usize>,
    /// Why the connection ended.
    pub disconnected: Option<u64>,
    pub seqno: u32,
    /// The receive buffer, if it is not the usual one.
    pub buffer: Option<usize>,
    /// A clock in milliseconds.
    pub clock: u64,
    /// The calls of the TCP and of the host, for a replay by the compiled program.
    pub trace: String,
}

pub struct Glue(pub Rc<RefCell<Data>>);

/// The Internet checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn bytes<'a>(memory: &'a mut Memory, at: &Value, n: usize) -> &'a mut [u8] {
    let Value::Bytes(packet, offset) = at else { panic!("no bytes") };
    &mut memory.packets[*packet as usize][*offset as usize..*offset as usize + n]
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Host for Glue {
    fn call(&mut self, memory: &mut Memory, name: &str, args: &[Value]) -> Value {
        let shown: String = args
            .iter()
            .map(|a| match a {
                Value::Number(n) => format!(" {n}"),
                Value::Bytes(packet, offset) => format!(" {packet}:{offset}"),
                _ => String::new(),
            })
            .collect();
        let content = match name {
            "transmit" | "deliver" | "hold" => hex(bytes(memory, &args[1], args[2].number() as usize)),
            _ => String::new(),
        };
        let value = self.answer(memory, name, args);
        let result = match (&value, name) {
            (Value::Number(n), _) => n.to_string(),
            (Value::Bytes(packet, _), _) => packet.to_string(),
            (_, "copy-out") => hex(bytes(memory, &args[1], args[3].number() as usize)),
            _ => String::new(),
        };
        self.0.borrow_mut().trace.push_str(&format!("{name}{shown} {content}= {result}\n"));
        value
    }
}

impl Glue {
    fn answer(&mut self, memory: &mut Memory, name: &str, args: &[Value]) -> Value {
        let mut d = self.0.borrow_mut();
        let number = |n: usize| args[n].number() as usize;
        match name {
            "new-segment" => {
                memory.packets.push(vec![0; MTU]);
                return Value::Bytes(memory.packets.len() as u32 - 1, 0);
            }
            "transmit" => {
                let segment = bytes(memory, &args[1], number(2)).to_vec();
                let may = d.may_be_marked;
                d.out.push(segment);
                d.capable.push(may);
            }
            "checksum" => return Value::Number(u64::from(checksum(bytes(memory, &args[0], number(1))))),
            "initial-seqno" => return Value::Number(u64::from(d.seqno)),
            "send-queue" => return Value::Number(d.send.len() as u64),
            "copy-out" => {
                let data: Vec<u8> = d.send.iter().skip(number(2)).take(number(3)).copied().collect();
                assert_eq!(data.len(), number(3));
                bytes(memory, &args[1], number(3)).copy_from_slice(&data);
            }
            "drop-sent" => {
                assert!(number(1) <= d.send.len());
                d.send.drain(..number(1));
            }
            "receive-room" => {
                let buffer = d.buffer.unwrap_or(BUFFER);
                return Value::Number((buffer - d.waiting.len().min(buffer)) as u64);
            }
            "deliver" => d.waiting.extend_from_slice(bytes(memory, &args[1], number(2))),
            "hold" => {
                let data = bytes(memory, &args[1], number(2)).to_vec();
                d.held.push(Some(data));
                return Value::Number(d.held.len() as u64 - 1);
            }
            "deliver-held" => {
                let data = d.held[number(1)].take().expect("held once");
                d.waiting.extend_from_slice(&data[number(2)..]);
            }
            "drop-held" => d.held[number(1)] = None,
            "ticks-begun" => return Value::Number(0),
            "may-be-marked" => d.may_be_marked = number(1) != 0,
            "take-return-route" => return Value::Number(d.route),
            "milliseconds" => return Value::Number(d.clock & 0xffff_ffff),
            "unanswered" => d.unanswered += 1,
            "connected" => d.connected = true,
            "urgent" => {
                let end = d.read.len() + d.waiting.len() + number(1);
                d.urgent_ends.push(end);
                d.urgent.push(args[1].number());
            }
            "end-of-data" => d.end_of_data = true,
            "disconnected" => d.disconnected = Some(number(1) as u64),
            other => panic!("{other}"),
        }
        Value::Void
    }
}
