// SPDX-License-Identifier: MIT OR Apache-2.0
// Strict priority in three classes, the highest limited to 30,000 packets a second, decided early (TOCS 2000, section 6.5).
//
//     castanet run -q --simtime conf/priority-early.click -h high.count -h medium.count -h low.count
//
// prints
//
//     low_queue :: Queue: overflow
//     high_queue :: Queue: overflow
//     medium_queue :: Queue: overflow
//     high.count:
//     15001
//
//     medium.count:
//     57000
//
//     low.count:
//     0
//
// Like conf/priority-late.click, but packets are classified where they arrive, and the processor takes its 300,000 packets a second in
// the order of priority, so it processes only packets that will be sent. High gets its 30,000, medium the rest of the link of
// 144,000, and low nothing while medium uses all of it. The counts are those of the last half of one simulated second.

define($RATE 120000, $CPU 300000, $LINK 144000, $HIGH 30000);

elementclass Stream { $n, $header | RatedSource(DATA $header, RATE $RATE, LENGTH 46) -> MarkIPHeader -> output; }
elementclass Link { input -> RatedUnqueue($LINK, BURST_DURATION 0.001) -> Discard; }

priority :: IPClassifier(ip dscp 46, ip dscp 10, -);

Stream(0, \<45b8002e 00000000 40116506 0a000001 0a000101 04d204d2 001a0000>) -> priority;
Stream(1, \<4528002e 00000000 40116595 0a000002 0a000101 04d204d2 001a0000>) -> priority;
Stream(2, \<4500002e 00000000 401165bb 0a000004 0a000101 04d204d2 001a0000>) -> priority;

priority [0] -> high_queue :: Queue -> Shaper($HIGH) -> high :: Counter -> [0] first :: PrioSched;
priority [1] -> medium_queue :: Queue -> medium :: Counter -> [1] first;
priority [2] -> low_queue :: Queue -> low :: Counter -> [2] first;
first -> cpu :: Shaper($CPU) -> Link;

DriverManager(wait 0.5s, write high.reset, write medium.reset, write low.reset, wait 0.5s, stop);
