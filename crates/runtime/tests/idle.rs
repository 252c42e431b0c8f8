// SPDX-License-Identifier: MIT OR Apache-2.0
//! An idle router uses no processor time. Alone in its file, so that no other test runs beside it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::time::Duration;
use support::{real, router};

/// Nanoseconds that the threads called `worker N` of this process have run so far; none where the system does not tell.
fn worked() -> Option<u64> {
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let path = task.ok()?.path();
        if std::fs::read_to_string(path.join("comm")).ok()?.starts_with("worker") {
            let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
            total += text.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(total)
}

#[test]
fn an_idle_router_sleeps() {
    // Everything that can wait for something waits: a source for its limit, for room, for a timer; a puller for packets.
    let text = "InfiniteSource(LIMIT 3) -> Discard;
        InfiniteSource -> full :: Queue(5) -> Discard(ACTIVE false);
        TimedSource(3600) -> Queue -> Unqueue -> Discard;
        TimedSource(3600) -> a :: Queue; a -> [0] r :: RoundRobinSched; b :: Queue -> [1] r; Idle -> b;
        r -> Unqueue -> Discard;";
    for workers in [1, 2] {
        let mut r = router(text, real(workers).0);
        let shared = r.shared().clone();
        let thread = std::thread::spawn(move || r.run().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let before = worked();
        std::thread::sleep(Duration::from_millis(300));
        let after = worked();
        shared.end();
        thread.join().unwrap();
        let (Some(before), Some(after)) = (before, after) else {
            panic!("this system does not tell how long threads run")
        };
        assert!(before > 0, "the workers have run");
        assert!(after - before < 5_000_000, "{workers} workers ran for {} ns while idle", after - before);
    }
}
