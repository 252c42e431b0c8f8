// SPDX-License-Identifier: MIT OR Apache-2.0
// A counter of UDP packets, as in the measurements of HPSR 2005, section IV: it reads the protocols of each Ethernet frame and
// drops the frame.
//
//     castanet run -q --simtime conf/udpcount.click -h udp.count -h udp.byte_count -h rate.rate -h other.count
//
// prints
//
//     udp.count:
//     297600
//
//     udp.byte_count:
//     17856000
//
//     rate.rate:
//     148950.505051
//
//     other.count:
//     19
//
// The frames come from memory: those of conf/udpgen.click, and ten ARP requests a second. To count the packets of a device, replace
// both sources by it.

define($RATE 148800, $COUNT 297600);

frames :: Classifier(12/0800 23/11, -);
frames [0] -> udp :: Counter -> rate :: AverageCounter(IGNORE 1) -> Discard;
frames [1] -> other :: Counter -> Discard;

RatedSource(DATA "", RATE $RATE, LENGTH 18, LIMIT $COUNT, STOP true)
    -> UDPIPEncap(10.0.0.1, 1234, 10.0.1.1, 1234)
    -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:01:01)
    -> frames;

TimedSource(INTERVAL 0.1, DATA \<0001 0800 0604 0001 020000000002 0a000002 000000000000 0a000101>)
    -> EtherEncap(0x0806, 02:00:00:00:00:02, ff:ff:ff:ff:ff:ff)
    -> frames;
