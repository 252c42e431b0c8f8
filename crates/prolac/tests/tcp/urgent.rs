// SPDX-License-Identifier: MIT OR Apache-2.0
//! Urgent data from end to end, over a path that loses and reorders segments.

use super::recovery::Path;
use super::{named, tcp};
use castanet_prolac::load::Extensions;

/// The peer is told of ends of urgent data only where they are, in their order, and of the last one in any case.
#[test]
fn ends_of_urgent_data_are_told() {
    for extensions in
        [Extensions::none(), named(&["Delay-Ack", "Slow-Start", "Fast-Retransmit"]), Extensions::All]
    {
        let program = tcp(&extensions);
        for seed in 0..6u64 {
            let mut random = seed * 11 + 3;
            let mut next = move |n: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % n
            };
            let mut path = Path::new(&program, 9_000);
            let (mut data, mut ends) = (Vec::new(), Vec::new());
            while path.now < 3_000_000 {
                path.step(&mut |_, _| if next(100) < 10 { Vec::new() } else { vec![50 + next(4) / 3 * 40] });
                // The second user is slow, so that its window closes.
                if path.now.is_multiple_of(400) {
                    path.read();
                }
                // A pointer has 16 bits: what is queued is less.
                let queued = path.ends[0].data.borrow().send.len();
                if ends.len() < 40 && queued < 50_000 && next(10) == 0 {
                    let n = next(3_000) as usize;
                    let part: Vec<u8> = (0..n).map(|i| (i + data.len()) as u8).collect();
                    path.ends[0].data.borrow_mut().send.extend(&part);
                    data.extend(part);
                    if next(2) == 0 {
                        ends.push(data.len());
                        assert_eq!(path.ends[0].tcp("send-urgent").number(), 0);
                    }
                }
                if ends.len() == 40 && path.is_quiet() {
                    break;
                }
            }
            path.read();
            let d = path.ends[1].data.borrow();
            assert!(d.read == data, "{seed}: {} of {}", d.read.len(), data.len());
            assert!(d.urgent_ends.iter().all(|end| ends.contains(end)), "{:?} of {ends:?}", d.urgent_ends);
            assert!(d.urgent_ends.is_sorted_by(|a, b| a < b), "{:?}", d.urgent_ends);
            assert_eq!(d.urgent_ends.last(), ends.last());
            assert!(d.urgent_ends.len() > 10, "{:?}", d.urgent_ends);
        }
    }
}
