// SPDX-License-Identifier: MIT OR Apache-2.0
// Strict priority in three classes, the highest limited to 30,000 packets a second, decided late (TOCS 2000, Figures 19 and 20).
//
//     castanet run -q --simtime conf/priority-late.click -h high.count -h medium.count -h low.count
//
// prints
//
//     eth2 :: Queue: overflow
//     eth0 :: Queue: overflow
//     eth1 :: Queue: overflow
//     low_queue :: Queue: overflow
//     high_queue :: Queue: overflow
//     high.count:
//     15001
//
//     medium.count:
//     50002
//
//     low.count:
//     7002
//
// Each class has RATE packets a second, by default 120,000. The processor handles 300,000 a second; the excess is dropped where packets
// arrive, independent of the class. So 100,000 packets of each class reach the queues. High gets its 30,000, medium its 100,000, and low
// the rest of a link of 144,000, although enough packets of medium were sent to use it. conf/priority-early.click avoids this. The
// counts are those of the last half of one simulated second.

define($RATE 120000, $CPU 300000, $LINK 144000, $HIGH 30000);

elementclass Stream { $n, $header | RatedSource(DATA $header, RATE $RATE, LENGTH 46) -> MarkIPHeader -> output; }
elementclass Link { input -> RatedUnqueue($LINK, BURST_DURATION 0.001) -> Discard; }

// The receive buffers of three controllers, which do not distinguish classes, and the processor, which serves them in rotation.
arrived :: RoundRobinSched -> cpu :: RatedUnqueue($CPU) -> priority :: IPClassifier(ip dscp 46, ip dscp 10, -);

Stream(0, \<45b8002e 00000000 40116506 0a000001 0a000101 04d204d2 001a0000>) -> eth0 :: Queue(256) -> [0] arrived;
Stream(1, \<4528002e 00000000 40116595 0a000002 0a000101 04d204d2 001a0000>) -> eth1 :: Queue(256) -> [1] arrived;
Stream(2, \<4500002e 00000000 401165bb 0a000004 0a000101 04d204d2 001a0000>) -> eth2 :: Queue(256) -> [2] arrived;

priority [0] -> high_queue :: Queue -> Shaper($HIGH) -> high :: Counter -> [0] first :: PrioSched;
priority [1] -> medium_queue :: Queue -> medium :: Counter -> [1] first;
priority [2] -> low_queue :: Queue -> low :: Counter -> [2] first;
first -> Link;

DriverManager(wait 0.5s, write high.reset, write medium.reset, write low.reset, wait 0.5s, stop);
