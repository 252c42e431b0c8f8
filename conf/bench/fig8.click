// SPDX-License-Identifier: MIT OR Apache-2.0
// The path that `castanet bench fig8` measures, run alone: all packets that arrive on one side leave on the other.
//
//     castanet run -q conf/bench/fig8.click LIMIT=10000 -h out0/Discard@1.count -h out1/Discard@1.count
//
// prints
//
//     out0/Discard@1.count:
//     10000
//
//     out1/Discard@1.count:
//     10000
//
// With one million packets from each side, and one packet at a time:
//
//     castanet run conf/bench/fig8.click
//     castanet run conf/bench/fig8.click LIMIT=10000 BURST=1

require(library "fig8-path.click");

DriverManager(
    write arp0.insert 1.0.0.88 02:00:01:00:00:58,
    write arp0.insert 1.0.0.66 02:00:01:00:00:42,
    write arp1.insert 2.0.0.77 02:00:02:00:00:4D,
    write arp1.insert 2.0.0.99 02:00:02:00:00:63,
    pause, pause, stop);
