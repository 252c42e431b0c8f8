// SPDX-License-Identifier: MIT OR Apache-2.0
// A differentiated-services traffic conditioning block (TOCS 2000, Figure 15; SOSP 1999, Figures 13 and 18). Four streams are separated
// by their DSCP (RFC 2474): A is limited by dropping, B by shaping, C by reclassification as best effort, D is best effort.
//
//     castanet run -q --simtime conf/diffserv.click -h a.count -h b.count -h c.count -h d.count
//
// prints
//
//     b_queue :: Queue: overflow
//     a.count:
//     0
//
//     b.count:
//     10001
//
//     c.count:
//     0
//
//     d.count:
//     28028
//
// Each stream has RATE packets a second, by default 14,000: `castanet run ... conf/diffserv.click RATE=7000` changes it. Stream A
// exceeds its limit of 7,500 and is dropped completely. The shaper of B passes 10,000; the others wait in the queue, which overflows. C
// exceeds 12,500 and joins D. The counts are those of the last of two simulated seconds. docs/diffserv.md compares them with the ideal
// curves over all rates.

define($RATE 14000, $LINK 100000, $A 7500, $B 10000, $C 12500);

elementclass Stream { $n, $header | RatedSource(DATA $header, RATE $RATE, LENGTH 46) -> MarkIPHeader -> output; }
elementclass Link { input -> RatedUnqueue($LINK) -> Discard; }

dscp :: IPClassifier(ip dscp 46, ip dscp 10, ip dscp 18, -);

Stream(0, \<45b8002e 00000000 40116506 0a000001 0a000101 04d204d2 001a0000>) -> dscp;
Stream(1, \<4528002e 00000000 40116595 0a000002 0a000101 04d204d2 001a0000>) -> dscp;
Stream(2, \<4548002e 00000000 40116574 0a000003 0a000101 04d204d2 001a0000>) -> dscp;
Stream(3, \<4500002e 00000000 401165bb 0a000004 0a000101 04d204d2 001a0000>) -> dscp;

// Streams A to C share priority on the link; best effort gets the rest.
fair :: RoundRobinSched -> [0] first :: PrioSched -> Link;
best_effort :: Queue -> d :: Counter -> [1] first;

// A: dropped while its rate is above 7,500 packets a second.
dscp [0] -> a_meter :: Meter($A) -> a_queue :: Queue -> a :: Counter -> [0] fair;
a_meter [1] -> Discard;

// B: at most 10,000 packets a second leave; the others stay in the queue.
dscp [1] -> b_queue :: Queue -> Shaper($B) -> b :: Counter -> [1] fair;

// C: best effort while its rate is above 12,500 packets a second.
dscp [2] -> c_meter :: Meter($C) -> c_queue :: Queue -> c :: Counter -> [2] fair;
c_meter [1] -> SetIPDSCP(0) -> best_effort;

// D: best effort.
dscp [3] -> best_effort;

DriverManager(wait 1s, write a.reset, write b.reset, write c.reset, write d.reset, wait 1s, stop);
