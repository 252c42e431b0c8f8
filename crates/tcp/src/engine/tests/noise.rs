// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments with any content, in any state: nothing panics, and the invariants of the TCB hold.

use super::*;
use crate::engine::invariants::check;

/// A number near one that matters, or any.
fn near(random: &mut Random, n: u32) -> u32 {
    match random.below(4) {
        0 => n,
        1 => n.wrapping_add(random.below(5) as u32).wrapping_sub(2),
        2 => n.wrapping_add(random.below(200_000) as u32).wrapping_sub(100_000),
        _ => random.next_u32(),
    }
}

#[test]
fn any_segments_in_any_state() {
    for seed in 0..60 {
        let mut random = Random::new(seed, "noise");
        let user = User::default();
        user.0.lock().write = bytes(random.below(5_000) as usize, seed);
        let mut e = engine(1, Settings { path_mtu: seed % 2 == 0, ..settings(1) }, user);
        let mut now = 1_000_000_000_000;
        for _ in 0..1_500 {
            let known = e.connections.tcbs();
            let t = known.get(random.below(known.len() as u64) as usize).map(|t| e.tcb(*t));
            let (next, una) = t.map_or((0, 0), |t| (t.rcv_next.get(), t.snd_max.get()));
            let port = 1000 + random.below(3) as u16;
            let (seq, ack) = (near(&mut random, next), near(&mut random, una));
            let mut s = vec![0; 20 + 4 * random.below(6) as usize];
            s.iter_mut().skip(20).for_each(|b| *b = random.below(10) as u8);
            s[12] = match random.below(30) {
                0 => random.next_u32() as u8,
                _ => ((s.len() / 4) << 4) as u8,
            };
            let data = [0, 0, 1, 100, 1460][random.below(5) as usize];
            s.extend(bytes(data, 1));
            s[4..8].copy_from_slice(&seq.to_be_bytes());
            s[8..12].copy_from_slice(&ack.to_be_bytes());
            s[13] =
                [2, 16, 16, 16, 17, 24, 18, 4, 20, 48, random.next_u32() as u8][random.below(11) as usize];
            s[14..16].copy_from_slice(&(random.next_u32() as u16 >> random.below(16)).to_be_bytes());
            s[18..20].copy_from_slice(&(random.next_u32() as u16).to_be_bytes());
            let end = |n, port| SocketAddrV4::new(address(n), port);
            let _ = e.input(Flow { local: end(1, 80), remote: end(0, port) }, &mut s, now);
            if random.below(5) == 0 {
                let seqno = una.wrapping_sub(random.below(3_000) as u32);
                let kind = [3, 3, 3, 4, 11, 12][random.below(6) as usize];
                let (code, size) = (random.below(6) as u8, random.next_u32() as u16);
                let mtu = random.next_u32() as u16 >> random.below(16);
                let flow = Flow { local: end(1, 80), remote: end(0, port) };
                let _ = e.icmp_error(&IcmpError { flow, kind, code, seqno, size, mtu }, now);
            }
            if random.below(10) == 0 {
                now += random.below(2_000_000_000) as i64;
                e.pass_time(now);
            }
            if random.below(50) == 0 {
                let _ = e.connect(None, end(0, port), 0, now);
            }
            if let (0, Some(c)) = (random.below(50), e.connections().first()) {
                let _ = e.with_stream(c.flow, now, |s| {
                    s.write(&[9; 700]);
                    s.mark_urgent();
                });
            }
            packets(&mut e);
            check(&e);
        }
    }
}
