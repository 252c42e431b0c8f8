// SPDX-License-Identifier: MIT OR Apache-2.0
// Copies and colours: Tee copies every packet to two paths, one of which paints it. Both are counted where the paths join.
//
//     castanet run -q --simtime conf/tee.click -h all.count -h red.count
//
// prints
//
//     all.count:
//     20
//
//     red.count:
//     10
//
// PaintTee passes all packets to output 0, and copies packets of its colour to output 1.

InfiniteSource(DATA "a packet", LIMIT 10, STOP true) -> t :: Tee;

t [0] -> Paint(1) -> both :: PaintTee(1);
t [1] -> Paint(2) -> both;

both [0] -> all :: Counter -> Idle;
both [1] -> red :: Counter -> Idle;
