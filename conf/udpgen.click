// SPDX-License-Identifier: MIT OR Apache-2.0
// A generator of UDP packets, as in the measurements of HPSR 2005, section IV: COUNT minimum-size Ethernet frames, RATE a second.
//
//     castanet run -q --simtime conf/udpgen.click -h sent.count -h sent.byte_count -h rate.rate
//
// prints
//
//     sent.count:
//     297600
//
//     sent.byte_count:
//     17856000
//
//     rate.rate:
//     148950.505051
//
// 64 bytes on the wire are 60 here: the check sequence of four bytes is the controller's business. 148,800 such frames fill a link
// of 100 Mbit/s. The rate is that of the second second: the source begins with a burst of a hundredth of a second. In simulated time the
// result is always the same and costs no waiting; without --simtime the same configuration runs in real time. In place of Discard put the device that is to be tested.

define($RATE 148800, $COUNT 297600);

RatedSource(DATA "", RATE $RATE, LENGTH 18, LIMIT $COUNT, STOP true)
    -> UDPIPEncap(10.0.0.1, 1234, 10.0.1.1, 1234)
    -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:01:01)
    -> sent :: Counter -> rate :: AverageCounter(IGNORE 1)
    -> Discard;
