// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the time for parsing, checking, building and initialising is proportional to the number of elements.
//! The test measures time, so `.ci/long` runs it on a machine that is otherwise idle.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_testkit::{router, simulated};

/// A configuration of about `n` elements: paths of 10 elements from a source to a sink, each with a queue in the
/// middle.
fn large(n: usize) -> String {
    let path = |i: usize| {
        format!(
            "Numbers({}, 0) -> a{i} :: Counter -> Paint(1) -> t{i} :: Tee -> Null -> Queue -> Unqueue -> Counter -> Discard;
             t{i} [1] -> Discard;\n",
            i % 250
        )
    };
    (0..n / 10).map(path).collect()
}

/// Returns the CPU time of this thread in nanoseconds, which does not depend on other programs.
fn worked() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse().ok());
    first.unwrap_or_else(|| std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos() as u64))
}

#[test]
#[ignore = "measures time; run by .ci/long"]
fn growth_is_linear() {
    let texts = [5_000, 20_000].map(large);
    let mut best = [u64::MAX; 2];
    for _ in 0..3 {
        for (text, best) in texts.iter().zip(&mut best) {
            let started = worked();
            let r = router(text, simulated(32).0);
            *best = (*best).min(worked() - started);
            assert!(r.shared().graph.len() >= 5_000);
        }
    }
    println!("5,000 elements {} us, 20,000 elements {} us", best[0] / 1000, best[1] / 1000);
    let ratio = best[1] as f64 / best[0].max(1) as f64;
    assert!(ratio < 6.0, "four times the elements took {ratio:.1} times as long");
}
