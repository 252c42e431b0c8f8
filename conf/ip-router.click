// SPDX-License-Identifier: MIT OR Apache-2.0
// The IP router of TOCS 2000, Figure 8 ("The Click Modular Router"), between two devices. It meets RFC 1812.
//
//     castanet run conf/ip-router.click DEV0=lan IP0=10.1.0.1/16 DEV1=wan IP1=192.0.2.2/30 ELSEWHERE='192.0.2.1 2'
//
// `castanet new ip-router` writes it for any number of interfaces and routes. The router owns the devices: the kernel must have no
// address on them (`ip addr flush dev eth0`) and must not forward (`sysctl net.ipv4.ip_forward=0`), or packets are handled twice.
// ELSEWHERE is the route for all other networks: `4` (unreachable), or a gateway and the interface to it, 1 or 2.
// SOURCE_ROUTES is `drop` (RFC 7126, 4.3.5) or `follow`.

define($DEV0 eth0, $IP0 10.0.0.1/24, $MTU0 1500,
       $DEV1 eth1, $IP1 10.0.1.1/24, $MTU1 1500, $ELSEWHERE 4, $ERRORS 1000, $SOURCE_ROUTES drop);

// All addresses of the router. From here on the name of a device stands for them: eth0:ip, eth0:net, eth0:bcast, eth0:eth.
AddressInfo($DEV0 $IP0, $DEV1 $IP1);
define($OURS $DEV0 $DEV1, $HEARD 255.255.255.255 $DEV0:bcast $DEV1:bcast);

// A device. Output 0: received IP packets. Output 1: ICMP errors. Input: routed packets.
elementclass Interface { $dev, $color, $mtu |
    FromDevice($dev) -> HostEtherFilter($dev:eth)                       // drops frames to other stations
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> requests :: Tee -> ARPResponder($dev:ip $dev:eth) -> queue :: Queue -> ToDevice($dev);
    kind [1] -> [1] arp :: ARPQuerier($dev:net, $dev:eth, ENTRY_CAPACITY 8192) -> queue; requests [1] -> [1] arp;
    kind [2] -> Paint($color) -> output;

    input -> DropBroadcasts                                             // link-level ones, RFC 1812, 5.3.4
        -> back :: PaintTee($color)                                     // packets that leave where they came in
        -> options :: IPGWOptions($dev:ip, OTHERADDRS $OURS, SOURCE_ROUTE $SOURCE_ROUTES)
        -> FixIPSrc($dev:ip)                                            // own errors get the address of this interface
        -> ttl :: DecIPTTL
        -> cut :: IPFragmenter($mtu)
        -> [0] arp;
    back [1] -> IPClassifier(src net $dev:net)                          // only neighbours: RFC 1812, 5.2.7.2
        -> ICMPError($dev:ip, redirect, host, BADADDRS $HEARD) -> [1] output;
    options [1] -> ICMPError($dev:ip, parameterproblem, erroratptr, BADADDRS $HEARD) -> [1] output;
    ttl [1] -> ICMPError($dev:ip, timeexceeded, transit, BADADDRS $HEARD) -> [1] output;
    cut [1] -> ICMPError($dev:ip, unreachable, needfrag, BADADDRS $HEARD, PMTU $mtu) -> [1] output;
    options [2] -> ICMPError($dev:ip, unreachable, srcroutefail, BADADDRS $HEARD) -> [1] output;
    arp [1] -> queue; arp [2] -> ICMPError($dev:ip, unreachable, host, BADADDRS $HEARD) -> [1] output;
}

one :: Interface($DEV0, 1, $MTU0) -> ip :: Strip(14) -> CheckIPHeader(INTERFACES $OURS)
    -> martians :: IPFilter(deny src net 0.0.0.0/8 or src net 127.0.0.0/8 or src net 224.0.0.0/3, allow all)
    -> routes :: StaticIPLookup($DEV0:ip 0, $DEV1:ip 0, $DEV0:net 1, $DEV1:net 2,
        $DEV0:bcast 3, $DEV1:bcast 3, 0.0.0.0/8 3, 127.0.0.0/8 3, 224.0.0.0/3 3, 0.0.0.0/0 $ELSEWHERE);
two :: Interface($DEV1, 2, $MTU1) -> ip;
routes [1] -> one; one [1] -> errors :: Queue -> Unqueue(-1) -> RatedSplitter($ERRORS) -> SetIPDSCP(48) -> routes;  // RFC 1812, 4.3.2.8 and 4.3.2.5
routes [2] -> two; two [1] -> errors;
routes [3] -> nobody :: Discard;                                        // broadcasts and invalid addresses
routes [4] -> ICMPError($DEV0:ip, unreachable, net, BADADDRS $HEARD) -> errors;

// Packets for the router itself: it answers pings, and all its ports are closed. Queues pass packets of several workers to one.
routes [0] -> Queue -> Unqueue(-1) -> named :: IPGWOptions($DEV0:ip, OTHERADDRS $OURS, SOURCE_ROUTE $SOURCE_ROUTES)
    -> ours :: StaticIPLookup($DEV0:ip 0, $DEV1:ip 0, 0.0.0.0/0 1) -> whole :: IPReassembler -> ping :: ICMPPingResponder -> routes;
ours [1] -> routes; named [1] -> ICMPError($DEV0:ip, parameterproblem, erroratptr, BADADDRS $HEARD) -> errors;
whole [1] -> ICMPError($DEV0:ip, timeexceeded, reassembly, BADADDRS $HEARD) -> errors;
ping [1] -> host :: IPClassifier(udp, icmp, -); host [1] -> nobody;
host [0] -> ICMPError($DEV0:ip, unreachable, port, BADADDRS $HEARD) -> errors;
host [2] -> ICMPError($DEV0:ip, unreachable, protocol, BADADDRS $HEARD) -> errors;
