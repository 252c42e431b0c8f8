// SPDX-License-Identifier: MIT OR Apache-2.0
// A script reads and writes handlers of a counter while packets flow.
//
//     castanet run -q --simtime conf/counting.click
//
// prints
//
//     11 packets at 10 a second
//     20 packets at 20 a second
//     40 packets at 40 a second
//     80 packets at 80 a second
//
// Each second the script prints the number of packets in that second, then doubles the rate of the source.

source :: RatedSource(RATE 10) -> c :: Counter -> Discard;

DriverManager(
    set before 0,
    label second,
    wait 1s,
    set now $(c.count),
    print "$(sub $now $before) packets at $(source.rate) a second",
    set before $now,
    write source.rate $(mul $(source.rate) 2),
    goto second $(lt $(source.rate) 100),
    stop);
