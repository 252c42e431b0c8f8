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
