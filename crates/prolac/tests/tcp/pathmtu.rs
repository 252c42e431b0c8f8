// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path MTU discovery over a path whose links carry less and less, and whose routers say so.

use super::recovery::{Path, ROUND_TRIP, data_of, number};
use super::{all_but, has, named, tcp};
use castanet_prolac::load::Extensions;
use castanet_prolac::program::Program;

/// Sends data over links of these sizes, each from its time on. Returns the sizes of the packets that did not pass, and whether the
/// connection still asks that packets are not fragmented.
fn transfer(program: &Program, links: &[(u64, usize)], slow_start: bool) -> (Vec<usize>, bool) {
    let mut path = Path::new(program, 60_000);
    path.ends[0].tcp("discover-path-mtu");
    let data: Vec<u8> = (0..200_000u32).map(|i| (i * 7 / 5) as u8).collect();
    path.ends[0].data.borrow_mut().send.extend(&data);
    let (mut errors, mut too_large, mut whole) = (Vec::new(), Vec::new(), true);
    while path.now < 120_000 && !(path.now > 1_000 && path.is_quiet()) {
        let mtu = links.iter().rfind(|(from, _)| *from <= path.now).map_or(1500, |(_, mtu)| *mtu);
        path.step(&mut |from, segment| {
            let size = segment.len() + 20;
            if from == 0 && size > mtu && whole {
                errors.push((number(segment, 4), size));
                too_large.push(size);
                return Vec::new();
            }
            vec![ROUND_TRIP / 2]
        });
        path.read();
        for (seqno, size) in errors.drain(..) {
            let before = path.ends[0].field_if("cwnd");
            path.ends[0].icmp_error([3, 4, seqno, size as u32, mtu as u32]);
            assert!(!slow_start || before > 0);
            assert_eq!(path.ends[0].field_if("cwnd"), before, "there is no congestion");
        }
        whole = path.ends[0].field("dont-fragment") != 0;
    }
    assert!(path.ends[1].data.borrow().read == data, "after {} ms", path.now);
    let last = path.log.iter().rev().find_map(|(_, e)| match e {
        super::recovery::Event::Sent(0, s) if data_of(s).1 > 300 => Some(s.len() + 20),
        _ => None,
    });
    let narrowest = links.iter().map(|(_, mtu)| *mtu).min().unwrap();
    assert!(last.unwrap() <= narrowest.max(576), "{last:?}");
    (too_large, whole)
}

#[test]
fn segments_fit_the_path() {
    let sets =
        [named(&["Path-Mtu"]), named(&["Path-Mtu", "Slow-Start"]), all_but(&["Sack"]), Extensions::All];
    for extensions in sets {
        let program = tcp(&extensions);
        let slow_start = has(&extensions, "Slow-Start");
        let (lost, whole) = transfer(&program, &[(0, 1300)], slow_start);
        // The first window is lost, and no segment after it.
        assert!(!lost.is_empty() && whole && lost.len() <= 42, "{extensions:?} {lost:?}");
        let (lost, whole) = transfer(&program, &[(0, 1400), (250, 800)], slow_start);
        assert!(lost.contains(&1500) && lost.contains(&1400) && whole, "{extensions:?} {lost:?}");
        // Below 576 bytes packets may be fragmented.
        let (lost, whole) = transfer(&program, &[(0, 300)], slow_start);
        assert!(!lost.is_empty() && !whole, "{extensions:?} {lost:?}");
    }
}
