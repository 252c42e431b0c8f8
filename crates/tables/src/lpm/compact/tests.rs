// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]

use super::*;

const fn route(port: u32) -> Route {
    Route { gw: 0, port }
}

/// A prefix in the network 10.0.n.0/24.
const fn near(n: u32, len: u8) -> Prefix {
    Prefix::new(0x0a00_0000 + (n << 8), len)
}

/// A pseudo-random number below `n`.
fn below(seed: &mut u64, n: u32) -> u32 {
    *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    (*seed >> 33) as u32 % n
}

#[test]
fn each_length_has_exact_ends() {
    let addr = 0x8f5a_96c3;
    for len in 1..=32 {
        let mut table = CompactTable::<true>::new();
        let prefix = Prefix::new(addr, len);
        let (first, last) = (prefix.addr, prefix.addr | !prefix.mask());
        let outside = [first.wrapping_sub(1), last.wrapping_add(1)];
        let inside = [first, last, first + (last - first) / 2, addr];
        table.insert(prefix, route(1)).unwrap();
        assert!(inside.iter().all(|&addr| table.lookup(addr) == Some(route(1))), "{prefix}");
        assert!(outside.iter().all(|&addr| table.lookup(addr).is_none()), "{prefix}");
        table.insert(Prefix::ALL, route(2)).unwrap();
        assert!(outside.iter().all(|&addr| table.lookup(addr) == Some(route(2))), "{prefix}");
        assert_eq!(table.remove(prefix), Ok(route(1)));
        assert!(inside.iter().chain(&outside).all(|&addr| table.lookup(addr) == Some(route(2))), "{prefix}");
        // Nothing is left of the prefix.
        assert_eq!((table.blocks(), table.len()), (0, 1));
        assert_eq!(table.first.single(&table.leaves, 0..FIRST), Some(Leaf::DEFAULT));
    }
}

#[test]
fn shorter_prefixes_do_not_hide_longer_ones() {
    for order in [[0, 8, 15, 24, 25, 31, 32], [32, 31, 25, 24, 15, 8, 0], [24, 32, 8, 25, 0, 31, 15]] {
        let mut table = CompactTable::<false>::new();
        for len in order {
            table.insert(near(77, len), route(len.into())).unwrap();
        }
        for gone in [24, 31, 0, 32, 8, 25, 15] {
            let best = |addr: u32| table.iter().filter(|r| r.0.contains(addr)).max_by_key(|r| r.0.len);
            for bit in 0..32 {
                let addr = near(77, 24).addr ^ 1 << bit;
                assert_eq!(table.lookup(addr), best(addr).map(|r| r.1), "{addr:#x}, before {gone}");
            }
            assert_eq!(table.remove(near(77, gone)), Ok(route(gone.into())));
        }
    }
}

#[test]
fn blocks_of_equal_halves_stay() {
    let mut table = CompactTable::<true>::new();
    let halves = [near(0, 25), Prefix::new(near(0, 24).addr + 128, 25)];
    for prefix in [halves[0], halves[1], near(0, 26)] {
        table.insert(prefix, route(1)).unwrap();
    }
    assert_eq!(table.remove(near(0, 26)), Ok(route(1)));
    assert_eq!(table.blocks(), 1);
    assert_eq!(table.remove(halves[0]), Ok(route(1)));
    assert_eq!(halves.map(|half| table.lookup(half.addr)), [None, Some(route(1))]);
}

#[test]
fn long_prefixes_have_no_limit() {
    // More blocks than 16 bits can count.
    let mut table = CompactTable::<false>::new();
    for n in 0..100_000 {
        table.insert(near(n, 26), route(n % 7)).unwrap();
    }
    assert_eq!((table.blocks(), table.len()), (100_000, 100_000));
    for n in 0..100_000 {
        let addr = near(n, 32).addr;
        assert_eq!([63, 64].map(|i| table.lookup(addr + i)), [Some(route(n % 7)), None]);
        assert_eq!(table.remove(near(n, 26)), Ok(route(n % 7)));
    }
    assert_eq!((table.blocks(), table.first.single(&table.leaves, 0..FIRST)), (0, Some(Leaf::DEFAULT)));
}

#[test]
fn memory_does_not_grow_with_changes() {
    let mut table = CompactTable::<true>::new();
    let mut held = Vec::new();
    let (mut seed, mut bytes) = (5, 0);
    for step in 0..400_000 {
        if held.len() < 20_000 {
            let len = 15 + below(&mut seed, 18) as u8;
            let prefix = Prefix::new(below(&mut seed, 1 << 22) << 6 | below(&mut seed, 64), len);
            let route = Route { gw: below(&mut seed, 1 << 20), port: 0 };
            if table.insert(prefix, route).is_ok() {
                held.push((prefix, route));
            }
        } else {
            for _ in 0..below(&mut seed, 3000) {
                let (prefix, route) = held.swap_remove(below(&mut seed, held.len() as u32) as usize);
                assert_eq!(table.remove(prefix), Ok(route));
            }
        }
        if step == 100_000 {
            bytes = table.bytes();
        }
    }
    assert!(table.bytes() <= bytes + bytes / 4, "{} after {bytes}", table.bytes());
    for (prefix, route) in held {
        assert_eq!(table.remove(prefix), Ok(route));
    }
    assert_eq!((table.len(), table.blocks()), (0, 0));
    assert_eq!(table.first.single(&table.leaves, 0..FIRST), Some(Leaf::DEFAULT));
    table.clear();
    assert!(table.bytes() < 1000, "{}", table.bytes());
}

#[test]
fn sparse_host_routes_stay_lean() {
    // The worst case: each prefix needs a block.
    let mut table = CompactTable::<false>::new();
    let mut seed = 77;
    let empty = table.bytes() + FIRST / cells::CELL * size_of::<cells::Cell>();
    for n in 0..50_000 {
        table.insert(near(n * 300 + below(&mut seed, 300), 32), Route::default()).unwrap();
    }
    let per_route = (table.bytes() - empty) / table.len();
    assert!(per_route < 128, "{per_route}");
}

#[test]
fn an_empty_table_and_a_default_route_need_no_first_level() {
    let mut table = CompactTable::<true>::new();
    assert_eq!(table.lookup(1), None);
    table.insert(Prefix::ALL, route(4)).unwrap();
    assert_eq!(table.lookup(u32::MAX), Some(route(4)));
    table.lookup_each(&mut [0, 1, u32::MAX], |&a| a, |_, _, found| assert_eq!(found, Some(route(4))));
    assert!(table.bytes() < 1000, "{}", table.bytes());
}

#[test]
fn a_full_table_refuses_routes() {
    let mut table = CompactTable::<true>::with_limits(Limits { prefixes: 6, hops: 3 });
    // The default route needs no number.
    assert_eq!(table.insert(Prefix::ALL, route(100)), Ok(()));
    assert_eq!(table.insert(near(0, 32), route(0)), Ok(()));
    assert_eq!(table.insert(near(1, 25), route(1)), Ok(()));
    assert_eq!(table.insert(near(1, 31), route(2)), Ok(()));
    assert_eq!(table.insert(near(2, 24), route(2)), Ok(()));
    // A fourth route is refused, and the table is unchanged.
    assert_eq!(table.insert(near(3, 30), route(3)), Err(TableError::Full));
    assert_eq!(table.replace(near(3, 30), route(3)), Err(TableError::Full));
    assert_eq!(table.replace(near(2, 24), route(3)), Err(TableError::Full));
    assert_eq!((table.len(), table.blocks(), table.get(near(2, 24))), (5, 2, Some(route(2))));
    assert_eq!(table.lookup(near(3, 24).addr), Some(route(100)));
    // A route that only one prefix uses can be changed.
    assert_eq!(table.replace(near(1, 25), route(3)), Ok(Some(route(1))));
    assert_eq!(table.lookup(near(1, 24).addr + 3), Some(route(3)));
    assert_eq!(table.insert(near(4, 24), route(1)), Err(TableError::Full));
    // A removal frees a number and a block, and a reused block has none of its old contents.
    assert_eq!(table.remove(near(0, 32)), Ok(route(0)));
    assert_eq!(table.insert(near(4, 30), route(5)), Ok(()));
    assert_eq!((table.blocks(), table.blocks.len()), (2, 2 * BLOCK));
    assert_eq!([0, 3, 4].map(|i| table.lookup(near(4, 24).addr + i)), [5, 5, 100].map(|p| Some(route(p))));
    assert_eq!(table.lookup(near(0, 24).addr), Some(route(100)));
    // Six prefixes are the limit.
    assert_eq!(table.insert(near(5, 25), route(5)), Ok(()));
    assert_eq!(table.insert(near(6, 24), route(5)), Err(TableError::Full));
    assert_eq!(table.insert(near(5, 25), route(2)), Err(TableError::Exists(route(5))));
    assert_eq!(table.replace(near(5, 25), route(2)), Ok(Some(route(5))));
    assert_eq!(table.replace(Prefix::ALL, route(7)), Ok(Some(route(100))));
    assert_eq!(table.lookup(near(6, 24).addr), Some(route(7)));
    table.clear();
    assert_eq!(table.insert(near(0, 25), route(9)), Ok(()));
}

#[test]
fn routes_keep_their_order_when_its_numbers_run_out() {
    let mut table = CompactTable::<false>::new();
    table.next_order = u32::MAX - 3;
    let prefixes = [7, 3, 9, 1, 8, 2].map(|n| near(n, 24));
    for prefix in prefixes {
        table.insert(prefix, route(1)).unwrap();
    }
    assert!(table.iter().map(|r| r.0).eq(prefixes));
    assert_eq!(table.next_order, 6);
}
