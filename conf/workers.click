// SPDX-License-Identifier: MIT OR Apache-2.0
// Two sources, two workers, and one queue that both fill.
//
//     castanet run -q -j 2 conf/workers.click -h in.count -h out.count
//
// prints
//
//     in.count:
//     200000
//
//     out.count:
//     200000
//
// `castanet explain -j 2 conf/workers.click` shows which worker runs which element. Each worker has its own `in`, and the handler shows
// the sum. Both share the queue. The elements behind the queue belong to the worker that pulls from it.

left :: InfiniteSource(LIMIT 100000, BURST 32, STOP true) -> in :: Counter;
right :: InfiniteSource(LIMIT 100000, BURST 32, STOP true) -> in;

in -> q :: Queue(200000) -> Unqueue(BURST 32) -> out :: Counter -> Discard;

DriverManager(
    pause, pause,
    label drain,
    wait 1ms,
    goto drain $(lt $(out.count) 200000),
    stop);
