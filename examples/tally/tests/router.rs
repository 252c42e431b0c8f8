// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the classes of this crate in complete routers.
#![allow(clippy::unwrap_used)]

#[path = "../src/router.rs"]
mod linked;

use castanet_element::Clock;
use castanet_runtime::{Options, Router};
use castanet_spec::Reason;

fn router(text: &str, batch: usize) -> Result<Router, String> {
    let options = Options { batch, clock: Clock::simulated(0), ..Options::default() };
    linked::router("config", text.as_bytes(), options)
}

#[test]
fn the_same_at_every_batch_size() {
    let text = "s :: InfiniteSource(DATA \\<01 02 03>, LIMIT 1000, BURST 64, STOP true)
        -> c :: CheckSize(2) -> t :: TallySwitch(OFFSET 2);
        t [0] -> Discard; t [1] -> Discard; t [2] -> Discard; t [3] -> d :: Discard;
        InfiniteSource(DATA \\<01>, LIMIT 10, ACTIVE true) -> c;";
    for batch in [1, 2, 3, 32, 256] {
        let mut r = router(text, batch).unwrap();
        r.run().unwrap();
        let (c, t, d) = (r.find("c"), r.find("t"), r.find("d"));
        assert_eq!(r.read(t, "tally", "").unwrap(), "0 0\n1 0\n2 0\n3 1000\n", "{batch}");
        assert_eq!(r.read(d, "count", "").unwrap(), "1000");
        let rejected: u64 = r.read(c, "rejected", "").unwrap().parse().unwrap();
        assert_eq!(r.drops().get(&(c.unwrap(), Reason::TooShort)).copied().unwrap_or(0), rejected);
    }
}

#[test]
fn errors_show_the_place() {
    let wrong = router("InfiniteSource -> CheckSize(64, 10) -> Discard;", 32).err().unwrap();
    assert!(wrong.contains("config:1") && wrong.contains("MIN: 64 is more than MAX, 10"), "{wrong}");
    let wrong = router("InfiniteSource -> ChekSize(64) -> Discard;", 32).err().unwrap();
    assert!(wrong.contains("CheckSize"), "{wrong}");
}
