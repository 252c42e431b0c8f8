// SPDX-License-Identifier: MIT OR Apache-2.0
// Two hosts on one wire: the first has three packets for the second, and must request its Ethernet address.
//
//     castanet run -q --simtime conf/arp.click -h arp.queries -h arp.responses -h received.count
//
// prints
//
//     arp.queries:
//     1
//
//     arp.responses:
//     1
//
//     received.count:
//     3
//
// The configuration is a cycle: requests of the querier come back to it as replies.

InfiniteSource(DATA "hello", LIMIT 3, STOP true)
    -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
    -> [0] arp :: ARPQuerier(10.0.0.1, 02:00:00:00:00:01)
    -> wire :: Classifier(12/0806 20/0001, 12/0800);

wire [0] -> ARPResponder(10.0.0.2 02:00:00:00:00:02) -> [1] arp;
wire [1] -> received :: Counter -> Discard;
