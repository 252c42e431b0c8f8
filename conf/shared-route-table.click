// SPDX-License-Identifier: MIT OR Apache-2.0
// One route table for several purposes, which SOSP 1999 ("The Click Modular Router", section 4.6) calls difficult to express.
//
//     castanet run -q --simtime conf/shared-route-table.click
//
// prints
//
//     10.3 is west: to west 1000 to east 2000 refused from west 0 from east 1000
//     10.3 is east: to west 0 to east 2000 refused from west 1000 from east 1000
//
// A router between west and east looks up each packet twice: its source, to check that it came from the right side (RFC 3704, strict
// reverse path forwarding), and its destination. Both lookups use one table element. The table looks up the destination annotation,
// which has the source address in the first lookup. The paint of the packet marks the lookup, so a PaintSwitch behind each output of the
// table dispatches the packet to the next step. When network 10.3.0.0/16 moves from west to east, one write to the table changes
// all lookups.

define($FROM_WEST 0, $FROM_EAST 1, $FORWARD 2);

table :: RadixIPLookup(10.1.0.0/16 0, 10.3.0.0/16 0, 10.2.0.0/16 1);

elementclass Traffic { $src, $dst |
    RatedSource(LENGTH 60, RATE 100) -> UDPIPEncap($src, 5000, $dst, 80) -> output;
}

// Received packets: the first lookup is by source.
from_west :: GetIPAddress(12) -> Paint($FROM_WEST) -> table;
from_east :: GetIPAddress(12) -> Paint($FROM_EAST) -> table;

Traffic(10.1.0.1, 10.2.0.1) -> from_west;
Traffic(10.3.0.1, 10.2.0.1) -> from_west;
Traffic(10.2.0.1, 10.3.0.1) -> from_east;
Traffic(10.1.0.1, 10.2.0.9) -> from_east;   // forged source

// The second lookup is by destination.
forward :: GetIPAddress(16) -> Paint($FORWARD) -> table;

table [0] -> west :: PaintSwitch;
table [1] -> east :: PaintSwitch;

west [0] -> forward;
east [1] -> forward;
west [1] -> refused_east :: Counter -> Discard;
east [0] -> refused_west :: Counter -> Discard;
west [2] -> to_west :: Counter -> Discard;
east [2] -> to_east :: Counter -> Discard;

clear :: Script(TYPE PASSIVE, write to_west.reset, write to_east.reset, write refused_west.reset, write refused_east.reset);
counts :: Script(TYPE PASSIVE,
    return to west $(to_west.count) to east $(to_east.count) refused from west $(refused_west.count) from east $(refused_east.count));

// The sources send their initial bursts before packets are counted.
DriverManager(
    wait 1s, write clear.run, wait 10s, print "10.3 is west: $(counts.run)",
    write table.set 10.3.0.0/16 1,
    write clear.run, wait 10s, print "10.3 is east: $(counts.run)",
    stop);
