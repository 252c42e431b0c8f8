// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use crate::chunk::KIND;
use proptest::prelude::*;

#[test]
fn fresh_packets_are_blank() {
    for round in 0..3 {
        let mut p = Packet::copy_of(&[1, 2, 3]).unwrap();
        assert_eq!((p.headroom(), p.len(), p.tailroom()), (28, 3, 2048 - 31), "round {round}");
        assert_eq!(p.annotations(), [0; 48]);
        assert!((0..48).all(|at| p.anno_u8(at) == 0) && p.anno::<8>(26) == [0; 8]);
        p.set_anno(20, [1, 2, 3, 4]);
        assert_eq!((p.anno::<8>(20), p.anno::<2>(24)), ([1, 2, 3, 4, 0, 0, 0, 0], [0; 2]));
        assert_eq!((p.timestamp(), p.packet_type()), (0, PacketType::Host));
        assert!(p.network().is_none() && p.mac().is_none() && p.transport().is_none());
        p.set_anno(30, [9; 8]);
        p.set_anno(0, [8; 24]);
        p.set_timestamp(77);
        p.set_packet_type(PacketType::Broadcast);
        p.set_network_header(0, 3);
        p.set_mac_header(-5);
    }
}

#[test]
fn annotations_beyond_the_end_are_ignored() {
    let mut p = Packet::new(1).unwrap();
    p.set_anno(45, [1u8; 4]);
    p.set_anno_u8(usize::MAX, 1);
    assert_eq!(p.annotations(), [0; 48]);
    assert_eq!(p.anno::<4>(45), [0; 4]);
    p.set_anno(22, [1, 2, 3, 4]);
    assert_eq!(p.anno::<4>(22), [1, 2, 3, 4]);
    assert_eq!(p.anno::<4>(24), [3, 4, 0, 0]);
}

#[test]
fn headroom_holds_stripped_bytes_or_zeros() {
    Packet::with_headroom(0, 2048).unwrap().data_mut().fill(0xff);
    let mut p = Packet::copy_of(b"abcdef").unwrap();
    assert!(p.strip(4));
    assert!(p.unstrip(6));
    assert_eq!(p.data(), b"\0\0abcdef");
    assert!(!p.strip(9) && p.len() == 8);
    assert!(p.unstrip(500));
    assert_eq!(p.len(), 508);
    assert!(p.data()[..500].iter().all(|&b| b == 0) && p.data()[500..] == *b"\0\0abcdef");
    assert!(!p.unstrip(70_000));
    assert!(p.put(3) && p.data().ends_with(b"abcdef\0\0\0"));
    assert!(!p.put(70_000));
    assert!(p.put(10_000) && p.len() == 10_511);
}

#[test]
fn headers_move_with_the_data() {
    let mut p = Packet::copy_of(&(0..60).collect::<Vec<u8>>()).unwrap();
    p.set_mac_header(0);
    p.set_network_header(14, 20);
    assert!(p.strip(14));
    assert_eq!((p.network().unwrap()[0], p.transport().unwrap()[0], p.mac().unwrap()[0]), (14, 34, 0));
    assert_eq!((p.mac_offset(), p.network_offset(), p.transport_offset()), (Some(-14), Some(0), Some(20)));
    assert!(p.unstrip(100));
    assert_eq!((p.network().unwrap()[0], p.transport().unwrap()[0], p.mac().unwrap()[0]), (14, 34, 0));
    p.truncate(90);
    assert!(p.network().is_none(), "the header was cut off with the data");
    p.set_network_header(91, 20);
    assert!(p.network().is_none());
}

#[test]
fn ip_headers_are_never_partial() {
    for len in (0..50).step_by(if cfg!(miri) { 10 } else { 1 }) {
        for at in [None, Some(0), Some(14), Some(29), Some(30), Some(49)] {
            let mut p = Packet::copy_of(&(0..len).collect::<Vec<u8>>()).unwrap();
            if let Some(at) = at {
                p.set_network_header(at, 20);
            }
            let want = p.network().and_then(|n| n.first_chunk::<20>()).copied();
            assert_eq!(want.is_some(), at.is_some_and(|at| at + 20 <= usize::from(len)));
            assert_eq!(p.ip_header().copied(), want);
            assert_eq!(p.ip_header_in_place().copied(), want);
            let clone = p.share().unwrap();
            assert!(p.ip_header_in_place().is_none());
            if let Some(h) = p.ip_header_mut() {
                assert_eq!(Some(*h), want);
                h.fill(0xff);
            }
            assert_eq!(clone.ip_header().copied(), want, "{len} {at:?}");
        }
    }
}

#[test]
fn headers_go_in_place_only_where_nothing_moves() {
    let mut p = Packet::copy_with_headroom(13, b"abc").unwrap();
    assert!(p.push_header_in_place::<14>().is_none());
    assert_eq!(p.data(), b"abc");
    *p.push_header_in_place().unwrap() = *b"0123456789ABC";
    assert_eq!((p.data(), p.headroom()), (&b"0123456789ABCabc"[..], 0));
    assert!(p.strip(4));
    let mut clone = p.share().unwrap();
    assert!(p.push_header_in_place::<4>().is_none() && clone.push_header_in_place::<4>().is_none());
    *p.push_header().unwrap() = *b"wxyz";
    assert!(clone.unstrip(4));
    assert_eq!((p.data(), clone.data()), (&b"wxyz456789ABCabc"[..], &b"0123456789ABCabc"[..]));
    // The copy has its own buffer.
    assert!(p.strip(4) && p.push_header_in_place::<4>().is_some());
}

#[test]
fn at_hand_succeeds_after_a_buffer_is_freed() {
    let thread = std::thread::spawn(|| {
        assert!(Packet::at_hand(0, 1).is_none());
        drop(Packet::new(1));
        let p = Packet::at_hand(28, 10).unwrap();
        assert_eq!((p.headroom(), p.len(), p.annotations()), (28, 10, [0; 48]));
        assert!(Packet::at_hand(28, 5000).is_none() && Packet::at_hand(1, MAX_LENGTH).is_none());
        assert!(Packet::at_hand(usize::MAX, 1).is_none());
    });
    thread.join().unwrap();
}

#[test]
fn clones_share_until_one_writes() {
    let mut a = Packet::copy_of(b"hello").unwrap();
    a.set_paint(3);
    let mut b = a.share().unwrap();
    let mut c = b.share().unwrap();
    assert!(a.is_shared() && b.is_shared());
    assert_eq!(a.data().as_ptr(), c.data().as_ptr());
    b.data_mut()[0] = b'j';
    assert_eq!((a.data(), b.data(), c.data()), (&b"hello"[..], &b"jello"[..], &b"hello"[..]));
    assert_eq!((b.paint(), b.is_shared()), (3, false));
    drop(a);
    assert!(!c.is_shared());
    c.data_mut()[0] = b'c';
    assert_eq!(c.data(), b"cello");
    let (_, used) = pool::usage();
    drop((b, c));
    assert_eq!(pool::usage().1, used - 3, "b's, c's and the first buffer");
}

#[test]
fn jumbo_clones_keep_their_size() {
    let mut a = Packet::new(60_000).unwrap();
    a.data_mut()[59_999] = 7;
    let mut b = a.share().unwrap();
    b.data_mut()[0] = 1;
    drop(a);
    assert_eq!((b.len(), b.data()[59_999]), (60_000, 7));
    assert!(Packet::new(MAX_LENGTH).is_none());
    assert!(Packet::with_headroom(usize::MAX, 1).is_none());
}

#[test]
fn the_limit_refuses_and_recovers() {
    std::thread::spawn(|| {
        pool::set_limit(chunk::SLAB);
        let all: Vec<_> = std::iter::from_fn(|| Packet::new(10)).collect();
        assert_eq!(all.len(), chunk::CLASSES[0].chunks());
        let mut all = all;
        assert!(all[0].share().is_none());
        drop(all);
        assert_eq!(pool::usage().1, 0);
        assert!(Packet::new(10).is_some());
    })
    .join()
    .unwrap();
}

#[test]
fn packets_return_from_other_threads_and_outlive_their_own() {
    // miri is about a thousand times slower.
    const PACKETS: u32 = if cfg!(miri) { 100 } else { 5000 };
    let (tx, rx) = std::sync::mpsc::channel::<Packet>();
    let maker = std::thread::spawn(move || {
        for i in 0..PACKETS {
            let mut p = Packet::copy_of(&i.to_be_bytes()).unwrap();
            if i % 3 == 0 {
                tx.send(p.share().unwrap()).unwrap();
            }
            tx.send(p).unwrap();
        }
    });
    let mut kept = Vec::new();
    let mut sum = 0u64;
    for p in rx {
        sum += u64::from(u32::from_be_bytes(*p.data().first_chunk().unwrap()));
        if sum.is_multiple_of(7) {
            kept.push(p);
        }
    }
    maker.join().unwrap();
    let all: u32 = (0..PACKETS).sum::<u32>() + (0..PACKETS).filter(|i| i % 3 == 0).sum::<u32>();
    assert_eq!(sum, u64::from(all));
    assert!(!kept.is_empty() && kept.iter().all(|p| p.len() == 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// A packet behaves like a vector of bytes.
    #[test]
    fn behaves_as_a_vector(ops in proptest::collection::vec((0u8..7, 0usize..90), 0..60)) {
        let mut p = Packet::copy_of(&[7; 40]).unwrap();
        let mut model: Vec<u8> = vec![7; 40];
        let mut others = Vec::new();
        for (op, n) in ops {
            match op {
                0 => { let ok = p.strip(n); prop_assert_eq!(ok, n <= model.len()); if ok { model.drain(..n); } }
                1 => { prop_assert!(p.push_header::<8>().map(|h| *h = [n as u8; 8]).is_some());
                       model.splice(0..0, [n as u8; 8]); }
                2 => { let ok = p.take_end(n); prop_assert_eq!(ok, n <= model.len()); if ok { model.truncate(model.len() - n); } }
                3 => { prop_assert!(p.put(n)); model.resize(model.len() + n, 0); }
                4 => { if let Some(b) = p.data_mut().get_mut(n) { *b ^= 1; model[n] ^= 1; } }
                5 => others.push((p.share().unwrap(), model.clone())),
                _ => { others.truncate(n % 4); }
            }
            prop_assert_eq!(p.data(), &model[..]);
            for (q, m) in &others { prop_assert_eq!(q.data(), &m[..]); }
        }
    }
}

#[test]
fn offloads_stay_with_their_headers() {
    let offload = Offload { checksum: Some((34, 16)), segments: Some((1, 1000)) };
    let mut data = vec![0; 54 + 2500];
    data[34 + 12] = 0x50;
    let mut p = Packet::copy_of(&data).unwrap();
    assert_eq!((p.offload(), p.segments()), (None, (1, 2554)));
    p.set_offload(Some(offload));
    assert_eq!((p.offload(), p.segments()), (Some(offload), (3, 2554 + 2 * 54)));
    let copy = p.share().unwrap();
    assert_eq!(copy.offload(), Some(offload));
    // The offset follows stripping, encapsulation and reallocation.
    assert!(p.strip(14));
    assert_eq!(p.offload().unwrap().checksum, Some((20, 16)));
    for _ in 0..20 {
        p.push_header::<10>().unwrap();
    }
    assert_eq!(p.offload().unwrap().checksum, Some((220, 16)));
    p.data_mut()[0] = 1;
    assert_eq!((p.offload().unwrap().checksum, p.segments()), (Some((220, 16)), (3, 2740 + 2 * 240)));
    // If the header has been stripped, the offload is gone.
    assert!(p.strip(230));
    assert_eq!(p.offload(), None);
    p.set_offload(None);
    assert_eq!(p.segments(), (1, 2510));
    // A new packet has no offload from the previous packet in its chunk.
    drop((p, copy));
    let mut p = Packet::copy_of(&[0; 60]).unwrap();
    assert_eq!(p.offload(), None);
    p.set_offload(Some(Offload { checksum: None, segments: Some((1, 0)) }));
    assert_eq!(p.segments(), (1, 60));
    p.set_offload(Some(Offload { checksum: Some((60_000, 16)), segments: Some((1, 9)) }));
    assert_eq!(p.segments(), (1, 60));
    p.set_offload(Some(Offload::default()));
    assert_eq!(p.offload(), None);
}

#[test]
fn pools_are_not_borrowed_from_themselves() {
    pool::borrow(pool::lender());
    std::thread::spawn(|| {
        let p = Packet::copy_of(b"abc").unwrap();
        assert_eq!(pool::usage().1, 1);
        drop(p);
        assert_eq!(pool::usage().1, 0);
    })
    .join()
    .unwrap();
}

/// The owner of a buffer changes its own metadata while clones on another thread are read, copied and dropped.
#[test]
fn clones_on_other_threads_do_not_access_the_metadata_of_the_owner() {
    let mut owner = Packet::copy_of(&[7; 64]).unwrap();
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let (mut a, mut b) = (owner.share().unwrap(), owner.share().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert!(a.is_shared());
                a.data_mut()[0] = 1;
                drop(b.share());
                drop(b);
                assert_eq!((a.data()[0], a.is_shared()), (1, false));
            });
            // An exclusive borrow of the metadata is held during all accesses by the other thread.
            let m = owner.meta_mut();
            m.hops += 1;
            std::thread::yield_now();
            m.flags |= (PacketType::Outgoing as u8) << KIND;
            m.anno[0] = round as u8;
        });
        assert_eq!((owner.data()[0], owner.is_shared()), (7, false));
    }
}

/// The owner's handle is dropped first. The clone stays readable and frees the buffer.
#[test]
fn a_buffer_outlives_the_handle_of_its_owner() {
    let mut owner = Packet::copy_of(&[7; 64]).unwrap();
    let clone = owner.share().unwrap();
    let reader = std::thread::spawn(move || clone.data().iter().map(|&b| u32::from(b)).sum::<u32>());
    drop(owner);
    assert_eq!(reader.join().unwrap(), 7 * 64);
}

#[test]
fn headers_are_copied_before_they_are_changed() {
    let mut p = Packet::copy_of(&[7; 60]).unwrap();
    p.set_network_header(14, 20);
    let changes: [fn(&mut Packet); 5] = [
        |p| p.network_mut().unwrap().fill(1),
        |p| p.transport_mut().unwrap().fill(1),
        |p| p.ip_header_mut().unwrap().fill(1),
        |p| p.data_mut().fill(1),
        |p| {
            p.strip(8);
            p.push_header::<8>().unwrap().fill(1);
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut clone = p.share().unwrap();
        change(&mut clone);
        assert!(clone.data().contains(&1) && !clone.is_shared());
        assert_eq!(p.data(), [7; 60], "change {i}");
    }
}

/// A pool is freed exactly when its thread has ended and its last chunk is returned, however many chunks other
/// threads returned before.
#[test]
fn pools_end_with_their_last_chunk() {
    let cases = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (1, 2), (3, 2)];
    for (abroad, kept) in cases {
        let (out, packets) = std::sync::mpsc::channel();
        let (back, came) = std::sync::mpsc::channel();
        let maker = std::thread::spawn(move || {
            // A slab has few large chunks, so the pool soon has to use returned chunks.
            let make = || Packet::new(60_000).unwrap();
            for _ in 0..abroad {
                out.send(make()).unwrap();
            }
            drop(make());
            came.recv().unwrap();
            let n = chunk::CLASSES[1].chunks();
            let slab: Vec<Packet> = (0..n).map(|_| make()).collect();
            assert_eq!(pool::usage(), (n, n), "returned chunks were used again");
            drop(slab);
            for _ in 0..kept {
                out.send(make()).unwrap();
            }
            pool::watch()
        });
        packets.iter().take(abroad).for_each(drop);
        back.send(()).unwrap();
        let mut left: Vec<Packet> = packets.iter().take(kept).collect();
        let pool = maker.join().unwrap();
        while let Some(p) = left.pop() {
            assert!(pool.upgrade().is_some(), "{abroad} {kept}");
            drop(p);
        }
        assert!(pool.upgrade().is_none(), "{abroad} {kept}");
    }
}

#[test]
fn dropped_packets_are_counted_on_every_path() {
    let one = Packet::new(1).unwrap();
    let mut two = Packet::new(1).unwrap();
    let (a, b) = (two.share().unwrap(), two.share().unwrap());
    let other = std::thread::spawn(|| Packet::new(1).unwrap()).join().unwrap();
    let mut three = Packet::new(10_000).unwrap();
    let c = three.share().unwrap();
    let start = pool::dropped();
    let now = || pool::dropped().wrapping_sub(start);
    drop(one);
    assert_eq!(now(), 1);
    drop(two);
    assert_eq!(now(), 2);
    drop(a);
    assert_eq!(now(), 3);
    drop(b);
    assert_eq!(now(), 4);
    drop(other);
    assert_eq!(now(), 5);
    drop((c, three));
    assert_eq!(now(), 7);
}

#[test]
fn what_was_stripped_from_clones_is_put_back_without_a_copy() {
    let mut p = Packet::copy_of(b"abcdef").unwrap();
    let mut clone = p.share().unwrap();
    assert!(clone.strip(6) && clone.is_empty() && clone.unstrip(6) && !clone.is_empty());
    assert!(clone.is_shared() && std::ptr::eq(p.data(), clone.data()));
    // The byte before the data was never part of the packet. It must be set to zero, so the clone gets its own
    // buffer.
    assert!(clone.unstrip(1) && !clone.is_shared());
    assert_eq!((p.data(), clone.data()), (&b"abcdef"[..], &b"\0abcdef"[..]));
}

#[test]
fn all_room_is_used_before_the_data_moves() {
    let mut p = Packet::copy_of(b"abc").unwrap();
    let at = p.data().as_ptr();
    assert!(p.put(p.tailroom()) && p.tailroom() == 0 && std::ptr::eq(p.data().as_ptr(), at));
    let mut q = Packet::copy_of(b"abc").unwrap();
    let end = q.data().as_ptr_range().end;
    assert!(q.unstrip(28) && q.headroom() == 0 && std::ptr::eq(q.data().as_ptr_range().end, end));
    assert!(q.strip(28) && q.push_header::<28>().is_some() && q.headroom() == 0);
    assert!(std::ptr::eq(q.data().as_ptr_range().end, end));
    // A clone copies its buffer before it writes a header, but needs no additional headroom.
    assert!(q.strip(28));
    let mut clone = q.share().unwrap();
    assert!(clone.push_header::<28>().is_some() && clone.headroom() == 0);
}

#[test]
fn packets_show_their_length_and_time() {
    let mut p = Packet::copy_of(b"abc").unwrap();
    assert_eq!(format!("{p:?}"), "Packet(3 bytes)");
    p.set_anno_u8(47, 1);
    assert_eq!(format!("{p:?}"), "Packet(3 bytes)");
    p.set_timestamp(77);
    assert_eq!(format!("{p:?}"), "Packet(3 bytes at 77 ns)");
}
