// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a few stations at the ports of a switch.

use crate::frames::Random;
use crate::world::World;
use crate::{Frames, compare};

/// A frame of a station, and the device that receives it. Stations move at times.
fn frame(random: &mut Random) -> (&'static str, Vec<u8>) {
    let station = |n: u64| if n == 0 { [0xff; 6] } else { [2, 0, 0, 0, 1, n as u8] };
    let source = if random.one_in(60) { 0 } else { 1 + random.below(6) };
    let destination = random.below(7);
    let place = if random.one_in(40) { random.below(3) } else { source % 3 };
    let mut frame = [&station(destination)[..], &station(source), &[0x88, 0xb5]].concat();
    frame.resize(60, destination as u8);
    if random.one_in(30) {
        frame.truncate(14 + random.below(4) as usize);
    }
    (["eth0", "eth1", "eth2"][place as usize], frame)
}

pub const SWITCHES: &[&str] = &[
    "s :: EtherSwitch;",
    "s :: EtherSwitch; t :: Suppressor; FromDevice(eth3) -> [0] t; FromDevice(eth4) -> [1] t;
     t [0] -> Discard; t [1] -> Discard; Script(wait 0.3, write s.timeout 0, wait 0.2, write s.timeout 100);",
    "s :: EtherSwitch(TIMEOUT 0.02); Script(wait 0.6, write s.timeout 0.2, wait 0.3, write s.timeout 0.01);",
];

fn config(switch: &str, ends: [&str; 3]) -> String {
    let [a, b, c] = ends;
    format!(
        "{switch} FromDevice(eth0) -> [0] s [0] -> {a}; FromDevice(eth1) -> [1] s [1] -> {b};
         FromDevice(eth2) -> [2] s [2] -> {c};"
    )
}

/// Each switch does the same in the kernel. `simulated` says that the time of programs is simulated, so that timeouts can end.
pub fn switches_in(world: fn() -> World, simulated: bool) {
    for (i, switch) in SWITCHES.iter().filter(|s| simulated || !s.contains("TIMEOUT")).enumerate() {
        let mut random = Random::new(i as u64);
        let frames: Frames = (0..1500).map(|_| frame(&mut random)).collect();
        compare(&config(switch, ["Observe(a)", "Observe(b)", "Observe(c)"]), &frames, world);
        let world = compare(&config(switch, ["Discard"; 3]), &frames, world);
        assert!(world.discarded() > 300, "{switch}: {}", world.discarded());
    }
}

#[test]
fn switches_do_the_same_in_the_kernel() {
    switches_in(World::default, true);
}

/// In the kernel, the outputs of a RandomSwitch are equally likely.
#[test]
fn a_random_switch_is_fair_in_the_kernel() {
    let world = World::default();
    for i in 0..3000 {
        world.receive("eth0", i, vec![2; 60]);
    }
    let text = "FromDevice(eth0) -> r :: RandomSwitch; r [0] -> c0 :: Counter -> Discard;
        r [1] -> c1 :: Counter -> Discard; r [2] -> c2 :: Counter -> Discard;";
    let (mut router, log) = crate::start(text, &world);
    router.start_in_kernel(std::sync::Arc::new(world.clone())).unwrap();
    let seen = crate::finish(router, &log, &world);
    let counts = ["c0.count", "c1.count", "c2.count"].map(|c| seen.handlers[c].parse::<u32>().unwrap());
    assert_eq!(counts.iter().sum::<u32>(), 3000);
    assert!(counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
    assert_eq!((world.ways().0, world.fault()), (0, None));
}
