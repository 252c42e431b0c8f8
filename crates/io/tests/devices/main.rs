// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of devices against the kernel: frames over a veth pair, and a TAP device whose other end is the host's stack.
#![allow(clippy::unwrap_used)]

mod facts;
mod receiving;
mod sending;
mod tun;
mod xdp;

use castanet_io::device::{FrameKind, Outgoing, PacketSender, PacketSocket, VnetHeader, info};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;

/// A timeout in milliseconds that only a hanging test reaches.
const LONG: i64 = 100_000;

fn readable(fd: impl AsFd, ms: i64) -> bool {
    ready(fd, PollFlags::IN, ms)
}

fn ready(fd: impl AsFd, what: PollFlags, ms: i64) -> bool {
    let mut fds = [PollFd::new(&fd, what)];
    poll(&mut fds, Some(&Timespec { tv_sec: ms / 1000, tv_nsec: (ms % 1000) * 1_000_000 })).unwrap() > 0
}

/// The compared parts of a frame.
#[derive(Clone, Debug, PartialEq)]
struct Got {
    data: Vec<u8>,
    wire_len: usize,
    kind: FrameKind,
    time_ns: i64,
    vnet: VnetHeader,
}

/// Receives frames until none arrives for 100 ms.
fn receive(s: &mut PacketSocket) -> Vec<Got> {
    receive_all(s, 0)
}

/// Waits for `expected` frames, then receives frames until none arrives for 100 ms.
fn receive_all(s: &mut PacketSocket, expected: usize) -> Vec<Got> {
    let mut all = Vec::new();
    while readable(s.fd(), if all.len() < expected { LONG } else { 100 }) {
        let n = s.receive(64, |f| {
            let mut data = vec![0; f.len()];
            assert!(f.copy_to(&mut data));
            all.push(Got { data, wire_len: f.wire_len(), kind: f.kind, time_ns: f.time_ns, vnet: f.vnet });
        });
        if n == 0 {
            break;
        }
    }
    all
}

fn frame(dst: [u8; 6], kind: u16, len: usize) -> Vec<u8> {
    let mut f = [&dst[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
    f.extend((f.len()..len).map(|i| i as u8));
    f
}

fn send(s: &mut PacketSender, frames: &[Vec<u8>]) {
    let sent = s.send(frames.iter().map(|f| Outgoing::plain(f)));
    assert_eq!((sent.count, sent.refusal), (frames.len(), None));
}

fn mac(name: &str) -> [u8; 6] {
    info(name).unwrap().ether.unwrap()
}

const ALL: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 9];
