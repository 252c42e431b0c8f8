// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_wire::EtherAddr;
use std::collections::VecDeque;

fn ether(n: u8) -> EtherAddr {
    EtherAddr([2, 0, 0, 0, 0, n])
}
/// Looks up an address. Returns the numbers of the packets that may be sent, and whether a query is due.
fn look(s: &State, ip: u32, n: u8, now: i64, lost: &mut Lost) -> (Vec<u8>, bool) {
    match s.look_up(LookUp { ip, now, poll: 0, workers: false }, packet(&[n]), lost) {
        Found::Known { held, packet, query, .. } => {
            (held.iter().chain([&packet]).map(|p| p.data()[0]).collect(), query)
        }
        Found::Held { query, .. } => (Vec::new(), query),
    }
}
fn numbers(lost: &Lost) -> Vec<u8> {
    lost.iter().map(|(p, _)| p.data()[0]).collect()
}

#[test]
fn packet_capacity_is_slimmed_from_the_oldest() {
    for (capacity, factor) in [(4, 2), (4, 0), (4, 1), (3, 3), (1, 2), (0, 2), (6, 2), (5, 5)] {
        let s = State::new(Settings { capacity, slim_factor: factor, ..Settings::default() });
        let mut lost = Lost::new();
        // The model of the table: entries in order, each with its packets.
        let (mut model, mut gone): (Vec<(u32, Vec<u8>)>, Vec<u8>) = (Vec::new(), Vec::new());
        for (n, ip) in [1, 2, 3, 1, 4, 1, 5, 2, 2, 6].into_iter().enumerate() {
            look(&s, ip, n as u8, 0, &mut lost);
            let waiting = |m: &[(u32, Vec<u8>)]| m.iter().map(|e| e.1.len()).sum::<usize>();
            // The new packet counts, but is never dropped to make room.
            if capacity > 0 && waiting(&model) + 1 > capacity as usize {
                let target = capacity - capacity.checked_div(factor).unwrap_or(0);
                while waiting(&model) + 1 > target as usize
                    && let Some(first) = model.iter_mut().find(|e| !e.1.is_empty())
                {
                    gone.push(first.1.remove(0));
                }
            }
            match model.iter_mut().find(|e| e.0 == ip) {
                Some(e) => e.1.push(n as u8),
                None => model.push((ip, vec![n as u8])),
            }
            assert_eq!((numbers(&lost), s.size().1), (gone.clone(), waiting(&model)), "{capacity}/{factor}");
        }
        assert_eq!(s.drops().get(), lost.len() as u64);
    }
}

#[test]
fn five_packets_to_five_addresses() {
    let s = State::new(Settings { capacity: 3, ..Settings::default() });
    let mut lost = Lost::new();
    (1..=5).for_each(|n| _ = look(&s, u32::from(n), n, 0, &mut lost));
    assert_eq!((numbers(&lost), s.size().1), (vec![1, 2], 3));
    // A new packet to the oldest address is not dropped to make room.
    let s = State::new(Settings { capacity: 2, ..Settings::default() });
    let mut lost = Lost::new();
    [1, 2, 2, 2, 1].into_iter().zip(1..).for_each(|(ip, n)| _ = look(&s, ip, n, 0, &mut lost));
    s.insert(1, ether(1), 0, &mut lost);
    assert_eq!((look(&s, 1, 9, 0, &mut lost).0, numbers(&lost)), (vec![5, 9], vec![1, 2, 3, 4]));
}

/// An expired address stays in the table as unknown. A packet to it resets its age to TIMEOUT.
#[test]
fn expired_addresses_stay_for_a_while() {
    const S: i64 = 1_000_000_000;
    let s = State::new(Settings { timeout: 4 * S, ..Settings::default() });
    let mut lost = Lost::new();
    s.insert(1, ether(1), 0, &mut lost);
    s.insert(2, ether(2), S / 2, &mut lost);
    let list = |s: &State, now: i64, lost: &mut Lost| {
        s.expire(now, lost);
        s.list(now)
    };
    let (one, two) = ("0.0.0.1", "0.0.0.2 0 02-00-00-00-00-02");
    assert_eq!(s.expire(S, &mut lost), Some(4 * S));
    assert_eq!(list(&s, 4 * S, &mut lost).lines().next().unwrap(), "0.0.0.1 0 02-00-00-00-00-01 4.000000");
    assert_eq!(
        list(&s, 52 * S / 10, &mut lost),
        format!("{one} 0 02-00-00-00-00-01 5.200000\n{two} 4.700000\n")
    );
    assert_eq!(look(&s, 1, 7, 53 * S / 10, &mut lost), (vec![], true), "it is asked for");
    // Entries are listed by age. A packet to an expired address resets its age to TIMEOUT.
    assert_eq!(
        list(&s, 54 * S / 10, &mut lost),
        format!("{two} 4.900000\n{one} 0 02-00-00-00-00-01 4.100000\n")
    );
    assert_eq!(
        list(&s, 64 * S / 10, &mut lost).lines().last().unwrap(),
        "0.0.0.1 0 02-00-00-00-00-01 5.100000"
    );
    // If no more packets come, an expired entry is removed after about another `timeout`, together with its
    // waiting packets.
    assert_eq!(s.size(), (2, 1));
    let last = s.expire(10 * S, &mut lost).unwrap();
    assert_eq!((last, s.size()), (103 * S / 10, (2, 1)), "not before those that were updated earlier");
    s.expire(last, &mut lost);
    assert_eq!((s.size(), numbers(&lost)), ((0, 0), vec![7]));
    // A reply makes the address known and releases its waiting packets.
    s.insert(1, ether(1), 0, &mut lost);
    assert_eq!(look(&s, 1, 8, 5 * S, &mut lost), (vec![], true));
    let held = s.answer(1, ether(3), 6 * S, false, false, &mut lost).unwrap();
    assert_eq!((held.len(), s.list(6 * S)), (1, "0.0.0.1 1 02-00-00-00-00-03 0.000000\n".into()));
    assert_eq!(look(&s, 1, 9, 6 * S, &mut lost), (vec![9], false));
}

#[test]
fn entry_capacities() {
    let s = State::new(Settings { entry_capacity: 4, ..Settings::default() });
    let mut lost = Lost::new();
    (1..=5).for_each(|n| _ = look(&s, u32::from(n), n, 0, &mut lost));
    assert_eq!((numbers(&lost), s.size()), (vec![1, 2, 3], (2, 2)));
    let s = State::new(Settings { entry_capacity: 1, slim_factor: 1, ..Settings::default() });
    let mut lost = Lost::new();
    (1..=3).for_each(|n| _ = look(&s, u32::from(n), n, 0, &mut lost));
    assert_eq!((numbers(&lost), s.size()), (vec![1, 2], (1, 1)), "the newest entry stays");
    let s = State::new(Settings { entry_packet_capacity: 2, ..Settings::default() });
    let mut lost = Lost::new();
    (1..=5).for_each(|n| _ = look(&s, 7, n, 0, &mut lost));
    assert_eq!(numbers(&lost), [1, 2, 3], "the latest are kept");
    s.insert(7, ether(1), 0, &mut lost);
    assert_eq!(look(&s, 7, 9, 0, &mut lost).0, [4, 5, 9], "what waited goes before");
    assert_eq!(s.size(), (1, 0));
}

#[test]
fn entries_age_from_their_last_update() {
    let s = State::new(Settings { timeout: 100, ..Settings::default() });
    let mut lost = Lost::new();
    s.insert(1, ether(1), 0, &mut lost);
    look(&s, 2, 2, 10, &mut lost);
    s.insert(3, ether(3), 20, &mut lost);
    assert_eq!(s.expire(20, &mut lost), Some(100));
    s.insert(1, ether(1), 50, &mut lost);
    assert_eq!(s.expire(109, &mut lost), Some(110));
    assert!(lost.is_empty());
    assert_eq!(s.expire(110, &mut lost), Some(120));
    assert_eq!((numbers(&lost), lost[0].1), (vec![2], Reason::ArpTimeout));
    assert_eq!(look(&s, 1, 5, 149, &mut lost).0, [5]);
    assert_eq!(look(&s, 1, 6, 150, &mut lost), (vec![], true), "expired: it waits and asks again");
    assert_eq!(s.size(), (2, 1), "with the expired entry of 3");
    assert_eq!(State::new(Settings { timeout: 0, ..Settings::default() }).expire(9, &mut lost), None);
}

#[test]
fn copies_are_invalid_exactly_when_an_address_changes() {
    let s = State::new(Settings::default());
    let mut lost = Lost::new();
    let mut changes = |f: &dyn Fn(&State, &mut Lost)| {
        let before = s.generation();
        f(&s, &mut lost);
        s.generation() != before
    };
    assert!(!changes(&|s, l| s.insert(1, ether(1), 0, l)), "new");
    assert!(!changes(&|s, l| s.insert(1, ether(1), 5, l)), "the same again");
    assert!(changes(&|s, l| s.insert(1, ether(2), 6, l)));
    assert!(changes(&|s, l| s.delete(1, 7, l)));
    assert!(!changes(&|s, l| s.delete(1, 7, l)) && !changes(&|s, l| s.delete(9, 7, l)));
    assert!(changes(&|s, l| s.clear(l)));
}

#[test]
fn state_moves_with_its_packets_and_order() {
    let (old, new) =
        (State::new(Settings::default()), State::new(Settings { capacity: 2, ..Settings::default() }));
    let mut lost = Lost::new();
    new.insert(3, ether(9), 0, &mut lost);
    old.insert(2, ether(2), 0, &mut lost);
    (1..=3).for_each(|n| _ = look(&old, 5, n, 1, &mut lost));
    old.insert(1, ether(1), 2, &mut lost);
    new.take_over(&old, &mut lost);
    assert_eq!((old.size(), new.size(), numbers(&lost)), ((0, 0), (4, 1), vec![1, 2]));
    let lines = new.list(1_000_000_000);
    let ips: Vec<&str> = lines.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(ips, ["0.0.0.3", "0.0.0.2", "0.0.0.5", "0.0.0.1"]);
}

#[test]
fn handlers() {
    let mut kit = Kit::<ArpTable>::new("TIMEOUT 10, CAPACITY 5").unwrap();
    assert_eq!(kit.element.args.capacity, 5);
    kit.write("insert", "10.0.0.8 02-00-00-00-00-01").unwrap();
    kit.at(100_000);
    kit.write("insert", "10.0.0.9 2:0:0:0:0:2").unwrap();
    let text = kit.read("table").unwrap();
    let words: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
    assert_eq!(words[0][..3], ["10.0.0.8", "1", "02-00-00-00-00-01"]);
    assert!(words[0][3].starts_with("0.000100") && words[1][3].starts_with("0.000000"), "{text}");
    kit.write("delete", "10.0.0.9").unwrap();
    assert!(kit.read("table").unwrap().contains("10.0.0.9 0 FF-FF-FF-FF-FF-FF 0.0"));
    assert_eq!((kit.read("count").unwrap(), kit.read("length").unwrap()), ("2".into(), "0".into()));
    assert!(kit.next_timer().is_some_and(|t| (10_000_000_000..10_000_200_000).contains(&t)));
    kit.expire().unwrap();
    let known = |kit: &mut Kit<ArpTable>| kit.read("table").unwrap().matches(" 1 02-").count();
    assert_eq!(
        (kit.read("count").unwrap(), known(&mut kit)),
        ("2".into(), 0),
        "one was deleted, one has expired"
    );
    kit.write("clear", "").unwrap();
    assert_eq!((kit.read("count").unwrap(), kit.read("drops").unwrap()), ("0".into(), "0".into()));
    assert_eq!(
        kit.write("insert", "\"1.1.1.1 2:0:0:0:0:2\""),
        Err(HandlerError::Value("IP: parse error\nETH: required argument missing".into()))
    );
    assert_eq!(
        kit.write("insert", "x").unwrap_err().to_string(),
        "IP: parse error\nETH: required argument missing"
    );
    assert!(kit.write("insert", "1.1.1.1 2:0:0:0:0:2 3").is_err() && kit.write("delete", "x").is_err());
}

#[test]
fn workers_share_it_and_lose_nothing() {
    let s = State::new(Settings { capacity: 30, entry_capacity: 12, ..Settings::default() });
    let worker = &|seed: u32| {
        let (mut x, mut lost, mut through, mut stale) = (seed, Lost::new(), 0, 0);
        for i in 0..2000i64 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let ip = x >> 28;
            if i % 5 == 0 {
                through += s.answer(ip, ether(ip as u8), i, false, true, &mut lost).map_or(0, |h| h.len());
            }
            let wanted = LookUp { ip, now: i, poll: 0, workers: false };
            match s.look_up(wanted, packet(&[1]), &mut lost) {
                Found::Known { ether: e, held, .. } => {
                    through += held.len() + 1;
                    stale += usize::from(e != ether(ip as u8));
                }
                Found::Held { .. } => {}
            }
        }
        (through, lost.len(), stale)
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|n| scope.spawn(move || worker(n * 77))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let (through, lost) = all.iter().fold((0, 0), |sum, w| (sum.0 + w.0, sum.1 + w.1));
    assert_eq!(through + lost + s.size().1, 4 * 2000, "in = out + dropped + held");
    assert!(through > 1000 && all.iter().all(|w| w.2 == 0));
}

#[test]
fn with_several_workers_nobody_overtakes_packets_that_waited() {
    let (s, mut lost) = (State::new(Settings::default()), Lost::new());
    let wanted = LookUp { ip: 7, now: 0, poll: 0, workers: true };
    let look = |n: u8, lost: &mut Lost| s.look_up(wanted, packet(&[n]), lost);
    let numbers = |held: VecDeque<Packet>| held.iter().map(|p| p.data()[0]).collect::<Vec<_>>();
    assert!(matches!(look(1, &mut lost), Found::Held { query: true, .. }));
    assert_eq!(numbers(s.answer(7, ether(9), 0, true, false, &mut lost).unwrap()), [1]);
    // The worker that received the reply is still sending packet 1, so other packets wait.
    assert!(matches!(look(2, &mut lost), Found::Held { query: false, .. }));
    assert!(
        s.answer(7, ether(9), 0, true, false, &mut lost).unwrap().is_empty(),
        "a second answer releases nothing out of turn"
    );
    let (to, held) = s.release(7).unwrap();
    assert_eq!((to, numbers(held)), (ether(9), vec![2]));
    assert!(matches!(look(3, &mut lost), Found::Held { query: false, .. }));
    assert_eq!(s.release(7).map(|r| numbers(r.1)), Some(vec![3]));
    assert!(s.release(7).is_none());
    assert!(matches!(look(4, &mut lost), Found::Known { .. }));
    assert_eq!((s.size(), lost.len()), ((1, 0), 0));
    assert!(s.release(8).is_none(), "an address that is not there");
}

#[test]
fn a_table_keeps_its_settings_when_it_gives_its_entries_away() {
    let all = |kit: &mut Kit<ArpTable>| {
        let mut lost = Lost::new();
        for i in 0..6 {
            kit.element.state.insert(i, EtherAddr([2, 0, 0, 0, 0, i as u8]), 1_000_000_000_000, &mut lost);
        }
        kit.read("count").unwrap()
    };
    let mut old = Kit::<ArpTable>::new("ENTRY_CAPACITY 4, CAPACITY_SLIM_FACTOR 0").unwrap();
    let mut new = Kit::<ArpTable>::new("ENTRY_CAPACITY 9, CAPACITY_SLIM_FACTOR 0").unwrap();
    assert_eq!(all(&mut old), "4");
    new.take_state_of(&mut old).unwrap();
    assert_eq!((old.read("count").unwrap(), new.read("count").unwrap()), ("0".into(), "4".into()));
    old.take_state_of(&mut new).unwrap();
    assert_eq!((all(&mut old), all(&mut new)), ("4".into(), "6".into()));
}

#[test]
fn addresses_that_nobody_has_make_room_before_hosts() {
    let s = State::new(Settings { entry_capacity: 64, ..Settings::default() });
    let mut lost = Lost::new();
    (0..20).for_each(|n| s.insert(n, ether(n as u8), 0, &mut lost));
    for ip in 1000..5000 {
        look(&s, ip, 1, 1, &mut lost);
        assert!(s.size().0 <= 64);
    }
    for n in 0..20 {
        assert_eq!(look(&s, n, 7, 2, &mut lost).0, [7], "host {n} is still known");
    }
    assert!(matches!(
        s.look_up(LookUp { ip: 4999, now: 2, poll: 0, workers: false }, packet(&[1]), &mut lost),
        Found::Held { first: false, .. }
    ));
    // If all entries are known, the oldest make room and the newest stays.
    (5000..5100).for_each(|n| s.insert(n, ether(1), 3, &mut lost));
    assert!(s.size().0 <= 64 && look(&s, 5099, 7, 4, &mut lost).0 == [7]);
    assert_eq!(lost.len() as u64, s.drops().get());
}

#[test]
fn tables_are_bounded_where_nothing_is_said() {
    let kit = Kit::<ArpTable>::new("").unwrap();
    let (s, mut lost) = (&kit.element.state, Lost::new());
    (0..=ENTRY_CAPACITY).for_each(|n| s.insert(n, ether(1), 0, &mut lost));
    assert_eq!(s.size().0, ENTRY_CAPACITY as usize / 2, "half of them made room");
    assert!(Kit::<ArpTable>::new("TIMEOUT -1").is_err());
}

#[test]
fn patience_belongs_to_a_table_and_not_to_its_entries() {
    let patient = || {
        let s = State::new(Settings::default());
        s.give_up_after(100);
        s
    };
    let mut lost = Lost::new();
    // Both tables give up packets that have waited too long. A moved packet is given up when the old table would have
    // given it up. Each table also gives up the packets that arrive after the move.
    let (old, new) = (patient(), patient());
    look(&old, 1, 1, 10, &mut lost);
    new.take_over(&old, &mut lost);
    look(&old, 3, 3, 20, &mut lost);
    look(&new, 2, 2, 30, &mut lost);
    assert_eq!((new.expire(109, &mut lost), numbers(&lost)), (Some(110), vec![]));
    assert_eq!((new.expire(110, &mut lost), numbers(&lost)), (Some(130), vec![1]));
    assert_eq!((new.expire(130, &mut lost).is_some(), numbers(&lost)), (true, vec![1, 2]));
    old.expire(120, &mut lost);
    assert_eq!(numbers(&lost), [1, 2, 3], "the old table, to which a failed swap returns");
    // Entries move to a table that never gives up packets, and later back to the first table.
    let (old, new) = (patient(), State::new(Settings { timeout: 1000, ..Settings::default() }));
    lost.clear();
    look(&old, 1, 1, 0, &mut lost);
    new.take_over(&old, &mut lost);
    assert_eq!((new.expire(500, &mut lost), numbers(&lost)), (Some(1000), vec![]));
    look(&new, 2, 2, 500, &mut lost);
    old.take_over(&new, &mut lost);
    old.expire(599, &mut lost);
    assert_eq!(numbers(&lost), [1]);
    old.expire(600, &mut lost);
    assert_eq!(numbers(&lost), [1, 2]);
    assert_eq!((old.size().1, new.size()), (0, (0, 0)));
}

#[test]
fn entries_of_another_table_age_by_the_settings_of_the_new_one() {
    let of = |timeout| State::new(Settings { timeout, ..Settings::default() });
    let (old, new, mut lost) = (of(1000), of(10), Lost::new());
    old.insert(1, ether(1), 0, &mut lost);
    look(&old, 2, 7, 5, &mut lost);
    new.take_over(&old, &mut lost);
    assert_eq!(look(&new, 1, 8, 9, &mut lost).0, [8]);
    assert_eq!(look(&new, 1, 9, 10, &mut lost).0, [], "too old for this table");
    assert_eq!((new.expire(14, &mut lost), numbers(&lost)), (Some(15), vec![]));
    assert_eq!((new.expire(15, &mut lost), numbers(&lost)), (Some(2 * 10 + 1_000_000_000), vec![7]));
}

#[test]
fn no_packet_waits_in_a_cleared_table() {
    let (s, mut lost) = (State::new(Settings::default()), Lost::new());
    s.give_up_after(100);
    look(&s, 1, 7, 0, &mut lost);
    s.clear(&mut lost);
    s.insert(2, ether(1), 50, &mut lost);
    // When the cleared packet would have been given up, the next expiry is that of the new entry. A time in the past would make
    // the timer fire for ever.
    assert_eq!(s.expire(100, &mut lost), Some(Settings::default().end(50)));
    assert_eq!(numbers(&lost), [7]);
}

#[test]
fn an_update_does_not_prolong_the_wait() {
    let (s, mut lost) = (State::new(Settings::default()), Lost::new());
    s.give_up_after(100);
    look(&s, 1, 7, 0, &mut lost);
    s.delete(1, 50, &mut lost);
    s.expire(99, &mut lost);
    assert_eq!((numbers(&lost), s.size()), (vec![], (1, 1)));
    s.expire(100, &mut lost);
    assert_eq!((numbers(&lost), s.size()), (vec![7], (1, 0)));
}

/// A forged claim is confirmed by mistake if it comes once between two queries and the answer of the genuine host is
/// lost. Therefore a confirmed address is queried again soon, and less often after each answer.
#[test]
fn a_false_claim_that_was_confirmed_is_found_out_within_a_second() {
    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;
    for poll in [0, 60 * S] {
        let (s, mut lost) = (State::new(Settings::default()), Lost::new());
        // Returns whether it is time for a query, whether it is broadcast, and the address.
        let look = |now: i64, lost: &mut Lost| match s.look_up(
            LookUp { ip: 1, now, poll, workers: false },
            packet(b"x"),
            lost,
        ) {
            Found::Known { query, lost, ether, .. } => (query, lost, ether),
            Found::Held { .. } => panic!("the address is known"),
        };
        let answer = |n: u8, now: i64, lost: &mut Lost| {
            assert!(s.answer(1, ether(n), now, false, true, lost).is_some())
        };
        answer(1, 0, &mut lost);
        assert_eq!(look(S, &mut lost), (false, false, ether(1)));
        // The forged claim comes, causes a query, and comes once more.
        answer(9, 2 * S, &mut lost);
        assert_eq!(look(2 * S, &mut lost), (true, true, ether(9)));
        answer(9, 2 * S + 50 * MS, &mut lost);
        assert_eq!(look(2 * S + 100 * MS, &mut lost), (false, true, ether(9)), "the doubt has ended");
        // Further unsolicited claims of the forger do not postpone the next query.
        answer(9, 2 * S + 500 * MS, &mut lost);
        answer(9, 3 * S, &mut lost);
        assert!(!look(3 * S, &mut lost).0);
        assert_eq!(look(3 * S + 50 * MS, &mut lost), (true, true, ether(9)), "but not the distrust");
        // The genuine host answers that query, and the one after it.
        answer(1, 3 * S + 51 * MS, &mut lost);
        assert_eq!(look(3 * S + 151 * MS, &mut lost), (true, true, ether(1)));
        let mut answered = 3 * S + 152 * MS;
        answer(1, answered, &mut lost);
        look(answered + 100 * MS, &mut lost);
        for wait in [1, 2, 4, 8, 16, 32] {
            assert!(!look(answered + wait * S - MS, &mut lost).0, "{wait}");
            assert_eq!(look(answered + wait * S, &mut lost), (true, true, ether(1)), "{wait}");
            answered += wait * S + MS;
            answer(1, answered, &mut lost);
        }
        assert!(!look(answered + 59 * S, &mut lost).0);
        assert_eq!(look(answered + 60 * S, &mut lost), (poll > 0, false, ether(1)));
    }
}
