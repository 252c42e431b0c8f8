// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the tables with a model: one map for each prefix length, searched from /32 down to /0.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use super::*;

trait Table: Default {
    fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError>;
    fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError>;
    fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound>;
    fn get(&self, prefix: Prefix) -> Option<Route>;
    fn lookup(&self, addr: u32) -> Option<Route>;
    fn lookup_each(&self, addrs: &mut [u32], found: impl FnMut(usize, &mut u32, Option<Route>));
    fn all(&self) -> Vec<(Prefix, Route)>;
    fn len(&self) -> usize;
    fn clear(&mut self);
    /// Whether `all` lists routes in insertion order.
    const AS_CONFIGURED: bool;
}

macro_rules! table {
    ($name:ty, $as_configured:literal) => {
        impl Table for $name {
            fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError> {
                <$name>::insert(self, prefix, route)
            }
            fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError> {
                <$name>::replace(self, prefix, route)
            }
            fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound> {
                <$name>::remove(self, prefix)
            }
            fn get(&self, prefix: Prefix) -> Option<Route> {
                <$name>::get(self, prefix)
            }
            fn lookup(&self, addr: u32) -> Option<Route> {
                <$name>::lookup(self, addr)
            }
            fn lookup_each(&self, addrs: &mut [u32], found: impl FnMut(usize, &mut u32, Option<Route>)) {
                <$name>::lookup_each(self, addrs, |&addr| addr, found)
            }
            fn all(&self) -> Vec<(Prefix, Route)> {
                self.iter().collect()
            }
            fn len(&self) -> usize {
                assert_eq!(<$name>::is_empty(self), <$name>::len(self) == 0);
                <$name>::len(self)
            }
            fn clear(&mut self) {
                <$name>::clear(self)
            }
            const AS_CONFIGURED: bool = $as_configured;
        }
    };
}
table!(StaticTable, true);
table!(CompactTable<false>, true);
table!(CompactTable<true>, false);

/// The pseudo-random generator xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    fn route(&mut self) -> Route {
        Route { gw: self.below(40), port: self.below(4) }
    }
}

struct Model {
    by_len: [HashMap<u32, Route>; 33],
}

impl Model {
    fn new() -> Self {
        Self { by_len: std::array::from_fn(|_| HashMap::new()) }
    }

    fn get(&self, prefix: Prefix) -> Option<Route> {
        self.by_len[usize::from(prefix.len)].get(&prefix.addr).copied()
    }

    fn set(&mut self, prefix: Prefix, route: Route) -> Option<Route> {
        self.by_len[usize::from(prefix.len)].insert(prefix.addr, route)
    }

    fn remove(&mut self, prefix: Prefix) -> Option<Route> {
        self.by_len[usize::from(prefix.len)].remove(&prefix.addr)
    }

    fn lookup(&self, addr: u32) -> Option<Route> {
        (0..=32).rev().find_map(|len| self.get(Prefix::new(addr, len)))
    }
}

fn insert<T: Table>(table: &mut T, model: &mut Model, prefix: Prefix, route: Route) -> bool {
    let want = match model.get(prefix) {
        Some(existing) => Err(TableError::Exists(existing)),
        None => {
            model.set(prefix, route);
            Ok(())
        }
    };
    assert_eq!(table.insert(prefix, route), want, "{prefix}");
    want.is_ok()
}

fn check_lookups<T: Table>(table: &T, model: &Model, addrs: &[u32]) {
    let mut items = addrs.to_vec();
    let mut count = 0;
    table.lookup_each(&mut items, |i, addr, route| {
        assert_eq!((i, *addr), (count, addrs[i]));
        let want = model.lookup(*addr);
        assert_eq!(route, want, "{addr:#x}, each");
        assert_eq!(table.lookup(*addr), want, "{addr:#x}");
        *addr = !*addr;
        count += 1;
    });
    assert_eq!(count, addrs.len());
    assert!(items.iter().zip(addrs).all(|(item, addr)| *item == !addr));
}

/// Runs random operations on few addresses and all lengths, so that prefixes nest and operations often find a
/// prefix.
fn small<T: Table>(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let (mut table, mut model) = (T::default(), Model::new());
    let mut order: Vec<Prefix> = Vec::new();
    let bases =
        [0, 0xffff_ffff, 0x0a00_0000, 0x0a00_00ff, 0x0a01_8000, 0xc0a8_0155, 0x7fff_ffff, 0x8000_0000];
    for step in 0..steps {
        let addr = bases[random.below(8) as usize] ^ ((1 << random.below(32)) * random.below(2));
        let prefix = Prefix::new(addr, random.below(33) as u8);
        let route = random.route();
        match random.below(10) {
            0..=3 => {
                if insert(&mut table, &mut model, prefix, route) {
                    order.push(prefix);
                }
            }
            4 => {
                let before = model.set(prefix, route);
                if before.is_none() {
                    order.push(prefix);
                }
                assert_eq!(table.replace(prefix, route), Ok(before));
            }
            5..=7 => {
                assert_eq!(table.remove(prefix), model.remove(prefix).ok_or(NotFound));
                order.retain(|&p| p != prefix);
            }
            _ => assert_eq!(table.get(prefix), model.get(prefix)),
        }
        assert_eq!(table.len(), order.len());
        let mut addrs = vec![random.next(), prefix.addr, prefix.addr | !prefix.mask()];
        addrs.extend(bases.iter().map(|base| base ^ random.below(4)));
        addrs.extend([prefix.addr.wrapping_sub(1), (prefix.addr | !prefix.mask()).wrapping_add(1)]);
        check_lookups(&table, &model, &addrs);
        if step % 16 == 0 {
            let mut want: Vec<_> = order.iter().map(|&p| (p, model.get(p).unwrap())).collect();
            if !T::AS_CONFIGURED {
                want.sort_by_key(|&(p, _)| p);
            }
            assert_eq!(table.all(), want);
        }
    }
    table.clear();
    assert_eq!((table.len(), table.all().len(), table.lookup(bases[3])), (0, 0, None));
}

#[test]
fn static_table_agrees_with_the_model() {
    small::<StaticTable>(1, 6000);
}

#[test]
fn compact_tables_agree_with_the_model() {
    small::<CompactTable<false>>(2, 6000);
    small::<CompactTable<true>>(3, 3000);
}

/// Builds a table of `n` prefixes and three short ones. Their lengths are similar to those of a full Internet table: mostly
/// /24, and some of most other lengths. The prefixes longer than 24 bits share 8000 different 24-bit prefixes.
fn full<T: Table>(seed: u64, n: usize) -> (T, Model, Vec<Prefix>, Random) {
    let mut random = Random(seed);
    let (mut table, mut model) = (T::default(), Model::new());
    let mut prefixes = Vec::new();
    while prefixes.len() < n {
        let prefix = match random.below(1000) {
            0..=549 => Prefix::new(random.next(), 24),
            550..=799 => Prefix::new(random.next(), 20 + random.below(4) as u8),
            800..=899 => Prefix::new(random.next(), 17 + random.below(3) as u8),
            900..=998 => Prefix::new(
                (random.below(8000) * 0x0008_3100) | random.below(256),
                25 + random.below(8) as u8,
            ),
            _ => Prefix::new(random.next(), (random.below(6) + 11) as u8),
        };
        let route = random.route();
        if insert(&mut table, &mut model, prefix, route) {
            prefixes.push(prefix);
        }
    }
    insert(&mut table, &mut model, Prefix::new(0xc000_0000, 3), random.route());
    insert(&mut table, &mut model, Prefix::new(0x2200_0000, 8), random.route());
    insert(&mut table, &mut model, Prefix::ALL, random.route());
    assert_eq!(table.len(), n + 3);
    (table, model, prefixes, random)
}

fn sample(prefixes: &[Prefix], random: &mut Random, count: usize) -> Vec<u32> {
    (0..count)
        .flat_map(|_| {
            let prefix = prefixes[random.below(prefixes.len() as u32) as usize];
            [random.next(), prefix.addr, (prefix.addr | !prefix.mask()).wrapping_add(random.below(2))]
        })
        .collect()
}

/// Inserts, replaces and removes routes, with lookups in between.
fn large<T: Table>(seed: u64) -> T {
    let (mut table, mut model, mut prefixes, mut random) = full::<T>(seed, 500_000);
    check_lookups(&table, &model, &sample(&prefixes, &mut random, 3000));
    for _ in 0..40_000 {
        let prefix = prefixes[random.below(500_000) as usize];
        let route = random.route();
        assert_eq!(table.replace(prefix, route), Ok(model.set(prefix, route)));
    }
    check_lookups(&table, &model, &sample(&prefixes, &mut random, 3000));
    for _ in 0..80_000 {
        let at = random.below(prefixes.len() as u32) as usize;
        let prefix = prefixes.swap_remove(at);
        assert_eq!(table.remove(prefix), model.remove(prefix).ok_or(NotFound));
        if at.is_multiple_of(2) {
            assert_eq!(table.remove(prefix), Err(NotFound));
        }
    }
    assert_eq!(table.remove(Prefix::ALL).ok(), model.remove(Prefix::ALL));
    assert_eq!(table.len(), 420_002);
    check_lookups(&table, &model, &sample(&prefixes, &mut random, 3000));
    let all = table.all();
    assert_eq!(all.len(), 420_002);
    assert!(all.iter().step_by(7).all(|&(prefix, route)| model.get(prefix) == Some(route)));
    table
}

#[test]
fn half_a_million_prefixes() {
    let table = large::<CompactTable<true>>(11);
    assert!(table.blocks() <= 8000 && table.blocks() > 1000);
    assert!(table.bytes() < 12 << 20, "{}", table.bytes());
}

/// Looks up addresses in a table of a million prefixes, then in what is left when most of them are removed.
fn a_million<T: Table>(seed: u64) {
    let (mut table, mut model, prefixes, mut random) = full::<T>(seed, 1_000_000);
    check_lookups(&table, &model, &sample(&prefixes, &mut random, 20_000));
    for &prefix in prefixes.iter().filter(|p| p.addr() & 0x300 != 0) {
        assert_eq!(table.remove(prefix), model.remove(prefix).ok_or(NotFound));
    }
    assert!(table.len() > 100_000 && table.len() < 700_000);
    check_lookups(&table, &model, &sample(&prefixes, &mut random, 20_000));
}

#[test]
fn a_million_prefixes() {
    a_million::<CompactTable<false>>(21);
}

#[test]
fn prefixes() {
    for (addr, len, text) in [
        (0xffff_ffff, 0, "0.0.0.0/0"),
        (0xffff_ffff, 1, "128.0.0.0/1"),
        (0x1212_0409, 16, "18.18.0.0/16"),
        (0x1212_0409, 32, "18.18.4.9/32"),
        (0x1212_0409, 200, "18.18.4.9/32"),
    ] {
        let prefix = Prefix::new(addr, len);
        assert_eq!(prefix.to_string(), text);
        assert!(prefix.contains(addr) && prefix.contains(prefix.addr()));
        assert_eq!(prefix.mask().leading_ones(), u32::from(prefix.prefix_len()));
        assert!(len == 0 || !prefix.contains(addr ^ 0x8000_0000));
    }
}

#[test]
fn all_processors_find_the_same_routes() {
    let (table, model, prefixes, mut random) = full::<CompactTable<false>>(31, 20_000);
    for n in [0, 1, 2, 31, 32, 33, 65, 256, 3000] {
        let mut addrs: Vec<u32> = sample(&prefixes, &mut random, n / 3 + 1).into_iter().take(n).collect();
        check_lookups(&table, &model, &addrs);
        let mut plain = Vec::new();
        table.lookup_all(&mut addrs, |&addr| addr, |i, _, route| plain.push((i, route)));
        let want: Vec<_> = addrs.iter().map(|a| model.lookup(*a)).enumerate().collect();
        assert_eq!(plain, want);
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let route = Route { gw: 0, port: 3 };
    assert_eq!(TableError::Exists(route).to_string(), "the prefix has a route to output 3 already");
    assert_eq!(TableError::Full.to_string(), "the route table is full");
    assert_eq!(NotFound.to_string(), "no route for exactly this prefix");
}
