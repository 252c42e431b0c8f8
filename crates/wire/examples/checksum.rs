// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints nanoseconds per checksum: `cargo run --release -p castanet-wire --example checksum`.

use std::hint::black_box;
use std::time::Instant;

use castanet_wire::{Ipv4Header, checksum};

#[inline(never)]
fn header_ok(header: &[u8; 20]) -> bool {
    checksum::ipv4_header20_ok(header)
}

#[inline(never)]
fn decrement(header: &mut Ipv4Header) {
    header.decrement_ttl();
}

fn nanoseconds(name: &str, mut work: impl FnMut()) {
    const ROUNDS: u32 = 2_000_000;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        work();
    }
    println!("{name:>24} {:7.2} ns", start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
}

fn main() {
    let mut header = Ipv4Header::new(17, 1, 2, 60, 255);
    nanoseconds("20-byte header", || {
        black_box(header_ok(black_box(header.as_array())));
    });
    let packet = [header.as_array().as_slice(), &[0; 40]].concat();
    nanoseconds("whole header check", || {
        black_box(Ipv4Header::checked(black_box(&packet), true).is_ok());
    });
    nanoseconds("time-to-live decrement", || decrement(black_box(&mut header)));
    let bytes = vec![0xa5; 9000];
    for len in [8, 40, 64, 576, 1480, 9000] {
        nanoseconds(&format!("{len} bytes"), || {
            black_box(checksum::sum(black_box(&bytes[..len])));
        });
    }
}
