define($LAN @LAN@,
       $WAN @WAN@, $GATEWAY @GATEWAY@,
       $MTU @MTU@, $ERRORS @ERRORS@@SERVICES@);

// From here on the name of a device stands for its addresses, as in eth0:ip, eth0:net, eth0:bcast, eth0:eth.
AddressInfo($LAN $LANIP, $WAN $WANIP);
define($OURS $LAN $WAN, $HEARD 255.255.255.255 $LAN:bcast $WAN:bcast);

// A device. Output 0: received packets, reassembled. Output 1: ICMP errors. Input: routed packets.
elementclass Interface { $dev |
    FromDevice($dev) -> HostEtherFilter($dev:eth)                       // drops frames to other stations
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> requests :: Tee -> ARPResponder($dev:ip $dev:eth) -> queue :: Queue -> ToDevice($dev);
    kind [1] -> [1] arp :: ARPQuerier($dev:net, $dev:eth) -> queue; requests [1] -> [1] arp;
    kind [2] -> Strip(14) -> CheckIPHeader(INTERFACES $OURS)
        -> IPReassembler                                                // ports are in first fragments only
        -> output;

    input -> DropBroadcasts
        -> FixIPSrc($dev:ip)                                            // own errors get the address of this interface
        -> ttl :: DecIPTTL
        -> cut :: IPFragmenter($MTU)
        -> [0] arp;
    ttl [1] -> ICMPError($dev:ip, timeexceeded, transit, BADADDRS $HEARD) -> [1] output;
    cut [1] -> ICMPError($dev:ip, unreachable, needfrag, BADADDRS $HEARD, PMTU $MTU) -> [1] output;
}

// Translation. Inputs of rewriters: 0 from inside, 1 from outside, 2 and up for forwarded ports. Outputs: 0 translated packets,
// 1 packets for the gateway itself.
rw :: IPRewriter(pattern $WAN:ip 1024-65535 - - 0 0, pass 1@PATTERNS@);
ping :: ICMPPingRewriter(pattern $WAN:ip 0-65535 - - 0 0, pass 1);
icmp :: ICMPRewriter(rw ping);                                          // errors from other hosts
ours :: ICMPRewriter(rw ping);                                          // errors of the gateway, about translated packets

lan :: Interface($LAN) -> from_lan :: IPClassifier(
    dst host $LAN:ip,
    not src net $LAN:net or dst net $LAN:net or dst net 0.0.0.0/8 or dst net 127.0.0.0/8 or dst net 224.0.0.0/3,
    tcp dst port 21, tcp or udp, icmp type echo, icmp, -);
from_lan [0] -> self :: ICMPPingResponder;
from_lan [1] -> nobody :: Discard;
from_lan [2] -> FTPPortMapper(rw, rw, 0) -> [0] rw;                     // PORT commands name addresses
from_lan [3] -> [0] rw;
from_lan [4] -> [0] ping;
from_lan [5] -> icmp;
from_lan [6] -> nobody;

wan :: Interface($WAN) -> from_wan :: IPClassifier(
    not dst host $WAN:ip or src net $LAN:net,
    icmp type echo or icmp type echo-reply, icmp, tcp or udp, -);
from_wan [0] -> nobody;
from_wan [1] -> [1] ping;
from_wan [2] -> icmp;
from_wan [3] -> services :: IPClassifier(@CHOICES@-);
@FORWARDED@
// Packets of inner hosts to the outer address are translated twice and reach the same server as from outside (RFC 4787, section 6).
rw [0] -> routes :: StaticIPLookup(
    $WAN:ip 0, $LAN:net 1, $WAN:net 2, 0.0.0.0/0 $GATEWAY 2,
    $LAN:ip 3, $LAN:bcast 3, $WAN:bcast 3, 0.0.0.0/8 3, 127.0.0.0/8 3, 224.0.0.0/3 3);
ping [0] -> routes;
icmp [0] -> routes;
icmp [1] -> nobody;
routes [0] -> from_wan;
routes [1] -> lan;
routes [2] -> wan;
routes [3] -> nobody;

// Packets for the gateway itself: it answers pings, and all its ports are closed.
rw [1] -> self;
ping [1] -> self;
self [0] -> routes;
self [1] -> other :: IPClassifier(tcp or udp, icmp, -);
from_wan [4] -> other;                                                  // protocols without ports or identifiers
other [0] -> ICMPError($WAN:ip, unreachable, port, BADADDRS $HEARD) -> errors :: Queue(100);
other [1] -> nobody;
other [2] -> ICMPError($WAN:ip, unreachable, protocol, BADADDRS $HEARD) -> errors;
lan [1] -> errors;
wan [1] -> errors;
errors -> Unqueue                                                       // so that one worker limits the rate of all errors
    -> RatedSplitter($ERRORS) -> SetIPDSCP(48) -> ours -> routes;       // RFC 1812, 4.3.2.8 and 4.3.2.5
ours [1] -> routes;
