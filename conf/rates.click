// SPDX-License-Identifier: MIT OR Apache-2.0
// Sources with a rate, and a slow link: packets wait in a queue, and are dropped when the queue is full.
//
//     castanet run -q --simtime conf/rates.click -h q.drops -h q.highwater_length -h sent.count
//
// prints
//
//     q :: Queue: overflow
//     q.drops:
//     61
//
//     q.highwater_length:
//     60
//
//     sent.count:
//     400
//
// A steady 50 packets a second, and one packet every half second, share a link of 40 packets a second. With simulated time the result
// is the same each time, and immediate.

RatedSource(RATE 50) -> q :: Queue(60);
TimedSource(INTERVAL 0.5s, DATA "heartbeat") -> q;

q -> RatedUnqueue(RATE 40) -> sent :: Counter -> Discard;

DriverManager(wait 10s, stop);
