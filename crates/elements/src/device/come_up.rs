// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that enter and leave the part of a router that runs in the kernel, and those that come up from there.

use castanet_element::kernel::handover::{Found, LONGEST, Points, Record};
use castanet_element::kernel::order::Ticket;
use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;

/// Describes how an element with a count `count` receives the frames of a device with the Ethernet address `mine`: it counts them,
/// and sets their packet types as [`come_up`]'s caller does at user level.
pub fn receive(code: &mut Code<'_>, mine: &[u8; 6]) {
    code.enter();
    code.count("count");
    let (short, stranger, group, multicast) = (code.label(), code.label(), code.label(), code.label());
    code.need(14, short);
    code.expect_bytes(0, mine, stranger);
    code.set_packet_type(PacketType::Host as u8);
    code.next(0);
    code.bind(stranger);
    let first = code.load(0, Size::Byte);
    code.branch(first, Test::Common, 1u32, group);
    code.set_packet_type(PacketType::OtherHost as u8);
    code.next(0);
    code.bind(group);
    code.expect_bytes(0, &[0xff; 6], multicast);
    code.set_packet_type(PacketType::Broadcast as u8);
    code.next(0);
    code.bind(multicast);
    code.set_packet_type(PacketType::Multicast as u8);
    code.next(0);
    // The kernel delivers no frames without an Ethernet header.
    code.bind(short);
    code.drop(Reason::Truncated as u16);
}

/// Describes how an element with counts `count` and `drops` sends packets by a device. Packets that cannot be sent leave on output
/// 1. At user level, those that were sent leave on output 0.
///
/// # Errors
/// Output 0 is connected: XDP cannot copy a packet.
pub fn send(code: &mut Code<'_>, device: &str) -> Lowered {
    if code.is_connected(0) {
        return Err("packets that it has sent leave by its output 0".into());
    }
    // The kernel sends no frames without an Ethernet header.
    let short = code.label();
    code.need(14, short);
    code.send(device, "count", "drops");
    code.bind(short);
    code.count("drops");
    code.next_or(1, Reason::SendFailed as u16);
    Ok(())
}

/// Passes received packets to the elements where they continue. The data of each begin with [`LONGEST`] bytes before its frame.
/// Frames without a record stay in the batch, without these bytes.
#[cold]
pub fn come_up(points: &Points, batch: &mut Batch, cx: &mut Cx<'_>) {
    for mut p in std::mem::take(batch).drain() {
        let Some((before, frame)) = p.data().split_at_checked(LONGEST) else {
            cx.drop(p, Reason::Truncated);
            continue;
        };
        let (found, inside) = match points.find(before, frame) {
            Found::Nothing => {
                // The device runs the plain program.
                if clear_record(&mut p) {
                    batch.push(p);
                }
                continue;
            }
            Found::Foreign => {
                counted_by_program(cx);
                cx.drop(p, Reason::Stopped);
                continue;
            }
            Found::Before(record) => (Resumed::of(&record), 0),
            Found::Inside(record) => (Resumed::of(&record), record.length),
        };
        counted_by_program(cx);
        if clear_record(&mut p) && p.strip(inside) && found.restore(&mut p) {
            cx.resume(found.element, found.input, p);
            if let Some(ticket) = found.ticket {
                cx.note_ticket(ticket);
            }
        } else {
            cx.drop(p, Reason::Truncated);
        }
    }
}

/// Whether the program in the kernel has counted a received packet. Its data begin with [`LONGEST`] bytes before the frame.
pub fn is_counted(points: &Points, p: &Packet) -> bool {
    let found = |(before, frame)| !matches!(points.find(before, frame), Found::Nothing);
    p.data().split_at_checked(LONGEST).is_some_and(found)
}

/// Cancels the receiver's count of a frame, because the program in the kernel has counted it: adding the largest number wraps
/// around to one less.
fn counted_by_program(cx: &mut Cx<'_>) {
    cx.entered(u64::MAX);
}

/// Removes the bytes before the frame, and clears them, so that no later frame finds them in the buffer.
fn clear_record(p: &mut Packet) -> bool {
    let Some(before) = p.data_mut().get_mut(..LONGEST) else { return false };
    before.fill(0);
    p.strip(LONGEST)
}

/// A record, after its bytes are gone.
struct Resumed {
    element: u32,
    input: u32,
    data: usize,
    end: Option<usize>,
    ticket: Option<Ticket>,
    mac: Option<i32>,
    network: Option<(i32, u32)>,
    packet_type: PacketType,
    annotations: [u8; 48],
}

impl Resumed {
    fn of(record: &Record<'_>) -> Resumed {
        let state = &record.point.state;
        Resumed {
            element: record.point.element,
            input: record.point.input,
            data: usize::try_from(state.data).unwrap_or(0),
            end: record.end.map(|n| n as usize),
            ticket: record.ticket,
            mac: state.mac,
            network: state.network,
            packet_type: packet_type(state.packet_type),
            annotations: record.annotations,
        }
    }

    /// Gives a packet whose data are the frame the lengths and annotations that it had in the kernel.
    fn restore(&self, p: &mut Packet) -> bool {
        p.clear_mac_header();
        if let Some(at) = self.mac {
            p.set_mac_header(at as isize);
        }
        if let Some(end) = self.end {
            p.truncate(end);
        }
        if let Some((at, length)) = self.network
            && let Ok(at) = usize::try_from(at)
        {
            p.set_network_header(at, length as usize);
        }
        p.set_packet_type(self.packet_type);
        let (hot, cold) = self.annotations.split_at(24);
        if let Some(hot) = hot.first_chunk::<24>() {
            p.set_anno(0, *hot);
        }
        if cold.iter().any(|b| *b != 0)
            && let Some(cold) = cold.first_chunk::<24>()
        {
            p.set_anno(24, *cold);
        }
        p.strip(self.data)
    }
}

/// The packet type with the number that the kernel uses.
fn packet_type(number: u8) -> PacketType {
    match number {
        1 => PacketType::Broadcast,
        2 => PacketType::Multicast,
        3 => PacketType::OtherHost,
        _ => PacketType::Host,
    }
}
