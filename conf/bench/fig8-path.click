// SPDX-License-Identifier: MIT OR Apache-2.0
// The forwarding path of TOCS 2000, Figure 8 ("The Click Modular Router"), from memory to memory, for `castanet bench fig8`.
// fig8.click runs it alone.
//
//     interface  address    Ethernet address   network    further networks
//     eth0       1.0.0.1    00:00:C0:AE:67:EF  1.0.0.0/8  4.0.0.0/8 behind 1.0.0.88, 6.0.0.0/8 behind 1.0.0.66
//     eth1       2.0.0.1    00:00:C0:4F:71:EF  2.0.0.0/8  3.0.0.0/8 behind 2.0.0.77, all others behind 2.0.0.99
//
// Each source copies one of its frames to a new packet, as a device does. $COLOR0 and $COLOR1 are the paints of the receiving
// interfaces: eth0 and eth1, or, with paints that no output side checks, two further interfaces.

define($FRAMES0 \<0000c0ae67ef 020001000005 0800 4500002e 00000000 401176b1 01000005 0300000a 0035 0035 001a 0000 000000000000000000000000000000000000>,
       $FRAMES1 \<0000c04f71ef 020002000006 0800 4500002e 00000000 401174b0 02000006 0400000a 0035 0035 001a 0000 000000000000000000000000000000000000>,
       $RANDOM false, $LIMIT 1000000, $BURST 32, $COLOR0 1, $COLOR1 2,
       $INTERFACES 1.0.0.1/8 2.0.0.1/8,
       $BROADCASTS 1.0.0.0 1.255.255.255 2.0.0.0 2.255.255.255);

// Sinks.
elementclass Sink { input -> Discard; }

source0 :: MemSource($FRAMES0, LIMIT $LIMIT, BURST $BURST, RANDOM $RANDOM, STOP true)
    -> kind0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
source1 :: MemSource($FRAMES1, LIMIT $LIMIT, BURST $BURST, RANDOM $RANDOM, STOP true)
    -> kind1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

queue0 :: Queue(1000) -> Unqueue($BURST) -> out0 :: Sink;
queue1 :: Queue(1000) -> Unqueue($BURST) -> out1 :: Sink;

// ARP.
kind0 [0] -> ARPResponder(1.0.0.1 00:00:C0:AE:67:EF) -> queue0;
kind1 [0] -> ARPResponder(2.0.0.1 00:00:C0:4F:71:EF) -> queue1;
arp0 :: ARPQuerier(1.0.0.1, 00:00:C0:AE:67:EF) -> queue0;
arp1 :: ARPQuerier(2.0.0.1, 00:00:C0:4F:71:EF) -> queue1;
kind0 [1] -> [1] arp0;
kind1 [1] -> [1] arp1;
kind0 [3] -> other :: Discard;
kind1 [3] -> other;

// IP.
ip :: Strip(14)
    -> CheckIPHeader(INTERFACES $INTERFACES)
    -> GetIPAddress(16)
    -> routes :: StaticIPLookup(
        1.0.0.1/32 0, 2.0.0.1/32 0,
        1.0.0.0/8 1, 4.0.0.0/8 1.0.0.88 1, 6.0.0.0/8 1.0.0.66 1,
        2.0.0.0/8 2, 3.0.0.0/8 2.0.0.77 2, 0.0.0.0/0 2.0.0.99 2);

kind0 [2] -> Paint($COLOR0) -> ip;
kind1 [2] -> Paint($COLOR1) -> ip;
routes [0] -> host :: Discard;

elementclass WayOut { $ip, $other_ip, $color |
    input -> DropBroadcasts
        -> redirect :: PaintTee($color)
        -> options :: IPGWOptions($ip, $other_ip)
        -> FixIPSrc($ip)
        -> ttl :: DecIPTTL
        -> fragment :: IPFragmenter(1500)
        -> output;

    redirect [1] -> ICMPError($ip, redirect, host, $BROADCASTS) -> [1] output;
    options [1] -> ICMPError($ip, parameterproblem, erroratptr, $BROADCASTS) -> [1] output;
    ttl [1] -> ICMPError($ip, timeexceeded, transit, $BROADCASTS) -> [1] output;
    fragment [1] -> ICMPError($ip, unreachable, needfrag, $BROADCASTS, PMTU 1500) -> [1] output;
}

routes [1] -> way0 :: WayOut(1.0.0.1, 2.0.0.1, 1) -> [0] arp0;
routes [2] -> way1 :: WayOut(2.0.0.1, 1.0.0.1, 2) -> [0] arp1;
way0 [1] -> routes;
way1 [1] -> routes;
