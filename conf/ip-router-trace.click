// SPDX-License-Identifier: MIT OR Apache-2.0
// The IP router of TOCS 2000, Figure 8 ("The Click Modular Router"), with two interfaces.
//
//     castanet run conf/ip-router-trace.click
//     castanet run conf/ip-router-trace.click TRACES=conf/traces OUT=/tmp
//
// It needs no devices: received frames of each interface are read from a trace in $TRACES, and sent frames are
// written to $OUT, for any capture program:
//
//     ip-router-eth0.out.pcap    sent on eth0
//     ip-router-eth1.out.pcap    sent on eth1
//     ip-router-host.out.pcap    IP packets for the router itself ("to Linux" in the figure)
//
//     interface  address    Ethernet address   network    further networks
//     eth0       1.0.0.1    00:00:C0:AE:67:EF  1.0.0.0/8  4.0.0.0/8 behind 1.0.0.88
//     eth1       2.0.0.1    00:00:C0:4F:71:EF  2.0.0.0/8  3.0.0.0/8 behind 2.0.0.77, all others behind 2.0.0.99
//
// Two additions to the figure: the traces also have frames to other stations, which a device would have dropped, and packets with
// invalid addresses (RFC 1812, 5.3.7).

define($TRACES conf/traces, $OUT .,
       $INTERFACES 1.0.0.1/8 2.0.0.1/8,
       $BROADCASTS 1.0.0.0 1.255.255.255 2.0.0.0 2.255.255.255);

// ---------------------------------------------------------------------------------------------------------------------
// Received frames. Outputs: ARP requests, ARP replies, IP to our Ethernet address, IP to broadcast and multicast addresses, the rest.

eth0_in :: FromDump("$TRACES/ip-router-eth0.pcap", STOP true)
    -> kind0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 0/0000C0AE67EF 12/0800, 0/01%01 12/0800, -);

eth1_in :: FromDump("$TRACES/ip-router-eth1.pcap", STOP true)
    -> kind1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 0/0000C04F71EF 12/0800, 0/01%01 12/0800, -);

// The queues hold all packets that the router sends for the traces until the writers get their turns.
eth0_queue :: Queue(20000) -> eth0_out :: ToDump("$OUT/ip-router-eth0.out.pcap", SNAPLEN 0);
eth1_queue :: Queue(20000) -> eth1_out :: ToDump("$OUT/ip-router-eth1.out.pcap", SNAPLEN 0);

// ARP: answer requests for our addresses; learn from replies.
kind0 [0] -> answer0 :: ARPResponder(1.0.0.1 00:00:C0:AE:67:EF) -> eth0_queue;
kind1 [0] -> answer1 :: ARPResponder(2.0.0.1 00:00:C0:4F:71:EF) -> eth1_queue;

arp0 :: ARPQuerier(1.0.0.1, 00:00:C0:AE:67:EF) -> eth0_queue;
arp1 :: ARPQuerier(2.0.0.1, 00:00:C0:4F:71:EF) -> eth1_queue;

kind0 [1] -> [1] arp0;
kind1 [1] -> [1] arp1;

// Frames to other stations, other protocols, runts.
kind0 [4] -> not_for_us :: Discard;
kind1 [4] -> not_for_us;

// ---------------------------------------------------------------------------------------------------------------------
// IP packets: painted by interface, checked, routed.

ip :: Strip(14)
    -> header :: CheckIPHeader(INTERFACES $INTERFACES)
    -> sources :: IPFilter(deny src net 127.0.0.0/8 or src net 224.0.0.0/3, allow all)
    -> GetIPAddress(16)
    -> routes :: StaticIPLookup(
        // Our own addresses and broadcast addresses: to the host.
        1.0.0.1/32 0, 1.0.0.0/32 0, 1.255.255.255/32 0,
        2.0.0.1/32 0, 2.0.0.0/32 0, 2.255.255.255/32 0,
        255.255.255.255/32 0,
        // Networks, directly and behind gateways.
        1.0.0.0/8 1,
        4.0.0.0/8 1.0.0.88 1,
        2.0.0.0/8 2,
        3.0.0.0/8 2.0.0.77 2,
        0.0.0.0/0 2.0.0.99 2,
        // No router forwards these: this host, loopback, multicast (no group is routed here), class E.
        0.0.0.0/8 3, 127.0.0.0/8 3, 224.0.0.0/3 3,
        // A network that is known to be unreachable.
        5.0.0.0/8 4);

kind0 [2] -> Paint(1) -> ip;
kind1 [2] -> Paint(2) -> ip;

routes [0] -> host_queue :: Queue(20000) -> host :: ToDump("$OUT/ip-router-host.out.pcap", ENCAP IP, SNAPLEN 0);
routes [3] -> martian_destination :: Discard;
routes [4] -> no_route_error :: ICMPError(1.0.0.1, unreachable, net, $BROADCASTS) -> routes;

// Packets received as link-layer broadcast or multicast must not be forwarded (RFC 1812, 5.3.4).
group :: Strip(14)
    -> group_header :: CheckIPHeader(INTERFACES $INTERFACES)
    -> for_host :: IPClassifier(
        dst host 1.0.0.1 or dst host 1.0.0.0 or dst host 1.255.255.255
            or dst host 2.0.0.1 or dst host 2.0.0.0 or dst host 2.255.255.255
            or dst host 255.255.255.255,
        -);

kind0 [3] -> group;
kind1 [3] -> group;
for_host [0] -> host_queue;
for_host [1] -> link_broadcast :: Discard;

// ---------------------------------------------------------------------------------------------------------------------
// The output side of an interface. Output 0: packets to send; output 1: ICMP errors, which are routed like any packet.

elementclass WayOut { $ip, $other_ip, $color |
    input -> DropBroadcasts
        -> redirect :: PaintTee($color)                 // packets that leave where they came in
        -> options :: IPGWOptions($ip, $other_ip)       // record route, timestamp
        -> FixIPSrc($ip)                                // own ICMP errors get the address of this interface
        -> ttl :: DecIPTTL
        -> fragment :: IPFragmenter(1500)
        -> output;

    redirect [1] -> redirect_error :: ICMPError($ip, redirect, host, $BROADCASTS) -> [1] output;
    options [1] -> option_error :: ICMPError($ip, parameterproblem, erroratptr, $BROADCASTS) -> [1] output;
    ttl [1] -> ttl_error :: ICMPError($ip, timeexceeded, transit, $BROADCASTS) -> [1] output;
    fragment [1] -> size_error :: ICMPError($ip, unreachable, needfrag, $BROADCASTS, PMTU 1500) -> [1] output;
}

routes [1] -> way0 :: WayOut(1.0.0.1, 2.0.0.1, 1) -> [0] arp0;
routes [2] -> way1 :: WayOut(2.0.0.1, 1.0.0.1, 2) -> [0] arp1;
way0 [1] -> routes;
way1 [1] -> routes;

// ---------------------------------------------------------------------------------------------------------------------
// Stop when both traces have ended and the queues are empty.

DriverManager(
    pause, pause,
    label drain,
    wait 10ms,
    goto drain $(gt $(add $(eth0_queue.length) $(eth1_queue.length) $(host_queue.length)) 0),
    stop);
