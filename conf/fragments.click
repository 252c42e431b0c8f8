// SPDX-License-Identifier: MIT OR Apache-2.0
// A packet of 3000 bytes for a link with an MTU of 1500: once without and once with the flag "don't fragment".
//
//     castanet run -q --simtime conf/fragments.click -h pieces.count -h pieces.byte_count -h errors.count
//
// prints
//
//     IPFragmenter(1500) DF 10.0.0.1 10.0.0.2 len=3000
//     pieces.count:
//     3
//
//     pieces.byte_count:
//     3040
//
//     errors.count:
//     1
//
// The second packet causes an ICMP error with the MTU (RFC 1191).

link :: IPFragmenter(1500);

InfiniteSource(LENGTH 2972, LIMIT 1, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> link;

// An IP header with that flag and a total length of 3000 bytes. The payload does not matter here.
InfiniteSource(DATA \<4500 0bb8 0000 4000 4011 1b33 0a000001 0a000002>, LENGTH 3000, LIMIT 1, STOP true)
    -> CheckIPHeader
    -> link;

link [0] -> pieces :: Counter -> Discard;
link [1] -> ICMPError(10.0.0.254, unreachable, needfrag, PMTU 1500) -> errors :: Counter -> Discard;

DriverManager(pause, pause);
