// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints nanoseconds per operation: `cargo run --release -p castanet-tables --example tables`.

use std::hint::black_box;
use std::time::Instant;

use castanet_tables::{
    CompactTable, Ewma, Fifo, Prefix, Ring, Route, StaticTable, Stride, TimerQueue, TokenBucket,
};

/// Runs `work` five times, and prints the time per operation of the fastest run.
fn time(name: &str, operations: usize, mut work: impl FnMut()) {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos()
    });
    println!("{name:>44} {:8.2} ns", best.min().unwrap_or(0) as f64 / operations as f64);
}

fn random(seed: &mut u64) -> u32 {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
}

#[inline(never)]
fn static_lookup(table: &StaticTable, addr: u32) -> Option<Route> {
    table.lookup(addr)
}

fn lookups(name: &str, addrs: &[u32], one: impl Fn(u32) -> Option<Route>) {
    time(&format!("{name}, one by one"), addrs.len(), || {
        for &addr in addrs {
            black_box(one(addr));
        }
    });
}

fn route_tables() {
    let mut seed = 1;
    let addrs: Vec<u32> = (0..1 << 20).map(|_| random(&mut seed)).collect();
    for count in [4, 8, 16, 100] {
        let mut table = StaticTable::new();
        let _ = table.insert(Prefix::ALL, Route::default());
        for _ in 1..count {
            let _ = table.insert(Prefix::new(random(&mut seed), 24), Route { gw: 1, port: 2 });
        }
        lookups(&format!("static, {count} routes"), &addrs, |addr| static_lookup(&table, addr));
    }
    for count in [100, 500_000, 1_000_000] {
        let mut table = CompactTable::<true>::new();
        let prefixes: Vec<(Prefix, Route)> = (0..count)
            .map(|i| {
                let len = if i % 3 == 0 { 18 + (i / 3 % 6) as u8 } else { 24 };
                (Prefix::new(random(&mut seed), len), Route { gw: random(&mut seed) & 255, port: 0 })
            })
            .collect();
        time(&format!("compact insert, {count}"), count, || {
            table.clear();
            for &(prefix, route) in &prefixes {
                let _ = table.insert(prefix, route);
            }
        });
        println!("{:>44} {:8} bytes", format!("compact, {count} routes"), table.bytes());
        let some = prefixes.get(..10_000).unwrap_or(&prefixes);
        time(&format!("compact remove and insert, {count}"), 2 * some.len(), || {
            for &(prefix, _) in some {
                let _ = table.remove(prefix);
            }
            for &(prefix, route) in some {
                let _ = table.insert(prefix, route);
            }
        });
        let mut known: Vec<u32> =
            addrs.iter().map(|&a| prefixes[a as usize % count].0.addr() | a & 255).collect();
        let name = format!("compact, {count} routes");
        lookups(&name, &known, |addr| table.lookup(addr));
        let mut routes = [None; 32];
        time(&format!("{name}, 32 at once"), known.len(), || {
            for addrs in known.chunks_mut(32) {
                table.lookup_each(addrs, |&addr| addr, |i, _, route| routes[i % 32] = route);
                black_box(&routes);
            }
        });
    }
}

fn queues() {
    const ROUNDS: usize = 100_000;
    let mut items: Vec<Box<u8>> = (0..32).map(Box::new).collect();
    let mut fifo = Fifo::new(1000);
    time("fifo, 32 in and out", ROUNDS * 32, || {
        for _ in 0..ROUNDS {
            fifo.extend_from(black_box(&mut items));
            fifo.drain_into(32, black_box(&mut items));
        }
    });
    time("fifo, one in and out", ROUNDS * 32, || {
        for _ in 0..ROUNDS * 32 {
            if let Some(item) = items.pop() {
                let _ = black_box(&mut fifo).push(item);
            }
            items.extend(black_box(&mut fifo).pop());
        }
    });
    let ring = Ring::new(1000);
    time("ring, 32 in and out", ROUNDS * 32, || {
        for _ in 0..ROUNDS {
            ring.push_many(black_box(&mut items));
            ring.pop_many(32, black_box(&mut items));
        }
    });
    time("ring, one in and out", ROUNDS * 32, || {
        for _ in 0..ROUNDS * 32 {
            if let Some(item) = items.pop() {
                let _ = black_box(&ring).push(item);
            }
            items.extend(black_box(&ring).pop());
        }
    });
}

fn schedulers() {
    const ROUNDS: usize = 1_000_000;
    for count in [1, 2, 8, 1000] {
        let mut stride = Stride::new();
        (0..count).for_each(|client| stride.add(client, 1024));
        time(&format!("stride turn, {count} clients"), ROUNDS, || {
            for _ in 0..ROUNDS {
                black_box(stride.turn());
            }
        });
    }
    let (mut timers, mut seed) = (TimerQueue::new(), 3);
    for key in 0..1000_u32 {
        timers.schedule(key, i64::from(random(&mut seed)));
    }
    time("timer expiry and schedule, 1000 timers", ROUNDS, || {
        for _ in 0..ROUNDS {
            if let Some((time, key)) = timers.pop_due(i64::MAX) {
                timers.schedule(key, time + i64::from(random(&mut seed)));
            }
        }
    });
    let (mut bucket, mut ewma) = (TokenBucket::new(1_000_000, 1000), Ewma::packets());
    time("token bucket", ROUNDS, || {
        for now in 0..ROUNDS as i64 {
            black_box(bucket.remove_if(1, now));
        }
    });
    time("rate update", ROUNDS, || {
        for now in 0..ROUNDS as i64 {
            ewma.update(1, now);
        }
    });
}

fn main() {
    route_tables();
    queues();
    schedulers();
}
