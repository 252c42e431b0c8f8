// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of Ethernet addresses, each with the port on which it was last heard. The table has a fixed size, and
//! several workers read and write it without a lock.

use castanet_wire::EtherAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The number of entries in a set of the table.
const WAYS: usize = 8;
/// The number of sets, a power of two.
const SETS: usize = 2048;

/// Entries whose addresses have the same hash. An entry has an address in its upper 48 bits, and the port plus 1 in its
/// lower 16 bits; 0 is a free entry. Several workers that add an address at the same time may make several entries for
/// it. Only the first of these is then used and refreshed.
#[derive(Default)]
#[repr(align(128))]
struct Set {
    entries: [AtomicU64; WAYS],
    heard: [AtomicI64; WAYS],
}

/// A set-associative table of addresses. Port numbers are below [`Table::MAX_PORTS`].
pub struct Table {
    sets: Box<[Set]>,
    seed: u64,
}

fn number(address: EtherAddr) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// The address and the port of an entry. None if the entry is free.
fn entry(e: u64) -> Option<(EtherAddr, usize)> {
    let [a, b, c, d, e, f, p0, p1] = e.to_be_bytes();
    let port = usize::from(u16::from_be_bytes([p0, p1])).checked_sub(1)?;
    Some((EtherAddr([a, b, c, d, e, f]), port))
}

/// Whether an address that was last heard at the time `heard` has expired. If frames have no timestamps, addresses do
/// not expire.
pub(super) fn is_old(heard: i64, now: i64, timeout: i64) -> bool {
    now.saturating_sub(heard) > timeout
}

impl Table {
    /// The maximum number of ports.
    pub const MAX_PORTS: usize = 0xffff;

    /// Makes an empty table. `seed` is secret, so that an attacker cannot choose addresses that fall into the same set.
    pub fn new(seed: u64) -> Table {
        Table { sets: (0..SETS).map(|_| Set::default()).collect(), seed }
    }

    /// Returns the set of an address, and the index at which the search for a free entry in the set starts.
    #[inline]
    fn set(&self, address: u64) -> Option<(&Set, usize)> {
        let mixed = (address ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32 ^ self.seed).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let i = (mixed >> 32) as usize % SETS;
        self.sets.get(i).map(|s| (s, (mixed >> 61) as usize))
    }

    /// Returns the port of an address if the address was heard within `timeout` before `now`. Removes the entry if it
    /// has expired.
    #[inline]
    pub fn port(&self, address: EtherAddr, now: i64, timeout: i64) -> Option<usize> {
        let address = number(address);
        let (set, _) = self.set(address)?;
        for (entry, heard) in set.entries.iter().zip(&set.heard) {
            let e = entry.load(Relaxed);
            if e >> 16 == address && e != 0 {
                if is_old(heard.load(Relaxed), now, timeout) {
                    let _ = entry.compare_exchange(e, 0, Relaxed, Relaxed);
                    return None;
                }
                return (e as usize & 0xffff).checked_sub(1);
            }
        }
        None
    }

    /// Records that an address was heard on a port at the time `now`.
    #[inline]
    pub fn learn(&self, address: EtherAddr, port: usize, now: i64) {
        let address = number(address);
        let want = address << 16 | (port as u64 + 1) & 0xffff;
        let Some((set, choice)) = self.set(address) else { return };
        for (entry, heard) in set.entries.iter().zip(&set.heard) {
            let e = entry.load(Relaxed);
            if e >> 16 == address && e != 0 {
                if e != want {
                    let _ = entry.compare_exchange(e, want, Relaxed, Relaxed);
                }
                if heard.load(Relaxed) != now {
                    heard.store(now, Relaxed);
                }
                return;
            }
        }
        enter(set, want, choice, now);
    }

    /// The addresses in the set of an address.
    pub fn neighbours(&self, address: EtherAddr) -> [Option<EtherAddr>; WAYS] {
        let set = self.set(number(address)).map(|(set, _)| set);
        std::array::from_fn(|i| {
            set.and_then(|s| s.entries.get(i)).and_then(|e| entry(e.load(Relaxed))).map(|e| e.0)
        })
    }

    /// The time at which an address was last heard.
    pub fn heard(&self, address: EtherAddr) -> Option<i64> {
        let address = number(address);
        let (set, _) = self.set(address)?;
        let is_it = |e: &AtomicU64| e.load(Relaxed) >> 16 == address && e.load(Relaxed) != 0;
        let at = set.entries.iter().position(is_it)?;
        set.heard.get(at).map(|h| h.load(Relaxed))
    }

    /// Notes that an address in the table was heard at the time `now`, unless it was heard later.
    pub fn hear(&self, address: EtherAddr, now: i64) {
        let address = number(address);
        let Some((set, _)) = self.set(address) else { return };
        for (entry, heard) in set.entries.iter().zip(&set.heard) {
            if entry.load(Relaxed) >> 16 == address {
                heard.fetch_max(now, Relaxed);
            }
        }
    }

    /// Takes over the addresses of another table (hot swap). The new element has `ports` ports; addresses on ports with
    /// higher numbers are left out.
    pub fn learn_from(&self, old: &Table, ports: usize) {
        for set in &old.sets {
            for (entry, heard) in set.entries.iter().zip(&set.heard) {
                if let Some((address, port)) = self::entry(entry.load(Relaxed)).filter(|e| e.1 < ports) {
                    self.learn(address, port, heard.load(Relaxed));
                }
            }
        }
    }

    /// Returns all addresses and their ports, sorted by address.
    pub fn list(&self) -> Vec<(EtherAddr, usize)> {
        let entries = self.sets.iter().flat_map(|s| &s.entries);
        let mut all: Vec<_> = entries.filter_map(|e| entry(e.load(Relaxed))).collect();
        all.sort_unstable();
        all.dedup_by_key(|e| e.0);
        all
    }
}

/// Writes a new address into a free entry. If the set has none, the new address replaces the one that was heard longest
/// ago. IEEE 802.1D-1998 section 7.8 allows this; it also allows a full table to learn nothing more. If another worker
/// has changed the chosen entry in the meantime, another entry is tried.
#[cold]
fn enter(set: &Set, want: u64, choice: usize, now: i64) {
    for _ in 0..WAYS {
        let places = set.entries.iter().zip(&set.heard).cycle().skip(choice).take(WAYS);
        let aged = places.map(|(entry, heard)| {
            let e = entry.load(Relaxed);
            (if e == 0 { i64::MIN } else { heard.load(Relaxed) }, e, entry, heard)
        });
        if let Some((_, e, entry, heard)) = aged.min_by_key(|a| a.0)
            && entry.compare_exchange(e, want, Relaxed, Relaxed).is_ok()
        {
            heard.store(now, Relaxed);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::Random;
    use std::collections::HashMap;

    fn address(n: u64) -> EtherAddr {
        let [_, _, a, b, c, d, e, f] = n.to_be_bytes();
        EtherAddr([a, b, c, d, e, f])
    }

    #[test]
    fn as_a_map_does() {
        let (table, mut random) = (Table::new(7), Random::new(1, "table"));
        let mut map: HashMap<u64, (usize, i64)> = HashMap::new();
        let mut now = 0;
        for step in 0..40_000 {
            now += random.below(3) as i64;
            let a = random.below(300) << random.below(2);
            if random.below(3) == 0 {
                let port = random.below(Table::MAX_PORTS as u64) as usize;
                table.learn(address(a), port, now);
                map.insert(a, (port, now));
            } else {
                let timeout = random.below(2000) as i64;
                if map.get(&a).is_some_and(|e| now - e.1 > timeout) {
                    map.remove(&a);
                }
                let want = map.get(&a).map(|e| e.0);
                assert_eq!(table.port(address(a), now, timeout), want, "step {step}: {a}");
            }
        }
        let mut all: Vec<_> = map.iter().map(|(a, e)| (address(*a), e.0)).collect();
        all.sort_unstable();
        assert_eq!(table.list(), all);
    }

    #[test]
    fn a_flood_of_addresses_does_not_grow_it() {
        let (table, mut random) = (Table::new(7), Random::new(2, "flood"));
        let station = address(5);
        for now in 0..200_000 {
            table.learn(address(random.next_u64() >> 16), 1, now);
            if now % 100 == 0 {
                table.learn(station, 3, now);
            }
        }
        assert!((WAYS * SETS / 2..=WAYS * SETS).contains(&table.list().len()));
        assert_eq!(table.port(station, 200_000, i64::MAX), Some(3), "one that speaks often stays");
        // Entries without timestamps are equally old, but when their set is full, a new address still replaces
        // one of them.
        let timeless = Table::new(8);
        for n in 0..100_000 {
            timeless.learn(address(n), 0, 0);
            assert_eq!(timeless.port(address(n), 0, 1), Some(0));
        }
    }

    #[test]
    fn extremes() {
        let table = Table::new(0);
        for a in [EtherAddr::ZERO, EtherAddr::BROADCAST] {
            assert_eq!(table.port(a, 0, 1), None);
            table.learn(a, Table::MAX_PORTS - 1, i64::MIN);
            assert_eq!(table.port(a, i64::MIN, 0), Some(Table::MAX_PORTS - 1));
            assert_eq!(table.port(a, i64::MAX, i64::MAX - 1), None);
        }
        assert!(table.list().is_empty());
    }

    #[test]
    fn workers_side_by_side() {
        const WORKERS: u64 = 4;
        let table = Table::new(3);
        let (mine, ours) =
            (|worker: u64, n: u64| address((worker << 32) + n % 500), |n: u64| address((1 + n % 50) << 40));
        // No set becomes full, even if each worker adds the common addresses itself, so no address is
        // evicted.
        let mut entered: HashMap<*const Set, usize> = HashMap::new();
        let each = (0..WORKERS).flat_map(|w| (0..500).map(move |n| mine(w, n)).chain((0..50).map(ours)));
        for set in each.filter_map(|a| table.set(number(a))) {
            *entered.entry(set.0).or_default() += 1;
        }
        assert!(entered.values().all(|n| *n <= WAYS), "choose another seed: {:?}", entered.values().max());
        let start = std::sync::Barrier::new(WORKERS as usize);
        std::thread::scope(|s| {
            for worker in 0..WORKERS {
                let (table, start) = (&table, &start);
                s.spawn(move || {
                    start.wait();
                    for n in 0..20_000u64 {
                        table.learn(mine(worker, n), worker as usize, n as i64);
                        table.learn(ours(n), (n % 50) as usize, n as i64);
                        assert_eq!(table.port(mine(worker, n), n as i64, i64::MAX), Some(worker as usize));
                        assert_eq!(table.port(ours(n), n as i64, i64::MAX), Some((n % 50) as usize));
                    }
                });
            }
        });
        assert_eq!(table.list().len(), 2050);
    }
}
