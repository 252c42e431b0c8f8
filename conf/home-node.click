// SPDX-License-Identifier: MIT OR Apache-2.0
// The home node of a mobile host, TOCS 2000, Figures 13 and 14 ("The Click Modular Router"): it answers ARP for the absent
// mobile host, and exchanges packets with it through an IP-in-IP tunnel (RFC 2003). docs/home-node.md explains it.
//
//     castanet run conf/home-node.click
//     castanet run conf/home-node.click DEV=lan HOMEIP=10.1.0.5/16 ROUTER=10.1.0.1 MOBILE=10.1.0.9 AWAY=192.0.2.7
//
// conf/mobile-node.click is the other end. The kernel of the home node uses the device HOST, which this configuration creates, so that
// its own packets to the mobile host take the tunnel too. On DEV the kernel must have no address and must not accept or answer packets:
// `ip addr flush dev eth0; sysctl net.ipv4.conf.eth0.rp_filter=1 net.ipv4.conf.eth0.arp_ignore=1 net.ipv4.ip_forward=0`.

define($DEV eth0, $HOMEIP 1.0.0.10/24, $ROUTER 1.0.0.1, $MTU 1500, $TUNNELMTU 1480,
       $MOBILE 1.0.0.11, $AWAY 43.0.0.9,
       $HOST home0, $HOSTETH 02:00:00:00:00:0a, $PEERETH 02:00:00:00:00:fe);

AddressInfo($DEV $HOMEIP);

// The home network. ARP: for the home node, and for the mobile host.
FromDevice($DEV) -> HostEtherFilter($DEV:eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
kind [0] -> requests :: Tee -> ARPResponder($DEV:ip $MOBILE $DEV:eth) -> queue :: Queue -> ToDevice($DEV);
kind [1] -> [1] arp :: ARPQuerier($DEV:net, $DEV:eth) -> queue; requests [1] -> [1] arp;
kind [2] -> Strip(14) -> CheckIPHeader
    -> from_lan :: IPClassifier(dst host $MOBILE, dst host $DEV:ip and src host $AWAY and ip proto ipip, dst host $DEV:ip, -);

// Outputs of the route table: 0 the home network and networks behind its router, 1 the kernel, 2 the mobile host.
routes :: StaticIPLookup($DEV:net 0, 0.0.0.0/0 $ROUTER 0, $DEV:ip 1, $MOBILE 2);

// To the mobile host: the time to live of forwarded packets is decremented (RFC 2003, 3.1), that of the kernel's packets is not.
from_lan [0] -> ttl :: DecIPTTL -> routes;
routes [2] -> fits :: IPFragmenter($TUNNELMTU)
    -> IPEncap(ipip, $DEV:ip, $AWAY) -> GetIPAddress(16) -> routes;
fits [1] -> ICMPError($DEV:ip, unreachable, needfrag, PMTU $TUNNELMTU) -> routes;

// From the mobile host: routed as if it were here. Only the mobile host may use the tunnel.
from_lan [1] -> IPReassembler -> StripIPHeader -> CheckIPHeader
    -> from_mobile :: IPClassifier(src host $MOBILE and dst host $DEV:ip, src host $MOBILE and not dst host $MOBILE, -);
from_mobile [0] -> routes;
from_mobile [1] -> ttl;
from_mobile [2] -> nobody :: Discard;
ttl [1] -> ICMPError($DEV:ip, timeexceeded, transit) -> routes;

routes [0] -> DropBroadcasts -> cut :: IPFragmenter($MTU) -> [0] arp;
cut [1] -> ICMPError($DEV:ip, unreachable, needfrag, PMTU $MTU) -> routes;

// The home node's kernel. This answers all of its ARP requests.
from_lan [2] -> routes;
from_lan [3] -> nobody;
FromHost($HOST, $HOMEIP, GATEWAY $ROUTER, ETHER $HOSTETH, MTU $MTU)
    -> own :: Classifier(12/0806 20/0001, 12/0800, -);
own [0] -> ARPResponder(0.0.0.0/0 $PEERETH) -> host :: ToHost($HOST);
own [1] -> Strip(14) -> CheckIPHeader -> to :: IPClassifier(dst host $MOBILE, -);
to [0] -> own_fits :: IPFragmenter($TUNNELMTU) -> routes;
to [1] -> routes;
own_fits [1] -> ICMPError($MOBILE, unreachable, needfrag, PMTU $TUNNELMTU) -> routes; // a host ignores errors from its own address
own [2] -> nobody;
routes [1] -> EtherEncap(0x0800, $PEERETH, $HOSTETH) -> host;
