// SPDX-License-Identifier: MIT OR Apache-2.0
// A mobile host on another network, TOCS 2000, Figure 13 ("The Click Modular Router"): its kernel keeps its home address, and
// all its packets pass an IP-in-IP tunnel (RFC 2003) to conf/home-node.click and back. docs/home-node.md explains it.
//
//     castanet run conf/mobile-node.click
//     castanet run conf/mobile-node.click DEV=wlan0 AWAYIP=192.0.2.7/24 ROUTER=192.0.2.1 MOBILEIP=10.1.0.9/16 HOME=10.1.0.5
//
// The kernel of the mobile host uses the device HOST, which this configuration creates. On DEV the kernel must have no address and must
// not accept or answer packets: `ip addr flush dev eth0; sysctl net.ipv4.conf.eth0.rp_filter=1 net.ipv4.conf.eth0.arp_ignore=1`.

define($DEV eth0, $AWAYIP 43.0.0.9/24, $ROUTER 43.0.0.1, $MTU 1500,
       $MOBILEIP 1.0.0.11/24, $HOMEROUTER 1.0.0.1, $HOME 1.0.0.10, $TUNNELMTU 1480,
       $HOST home0, $HOSTETH 02:00:00:00:00:0b, $PEERETH 02:00:00:00:00:fe);

AddressInfo($DEV $AWAYIP, mobile $MOBILEIP);

// The network that it visits.
FromDevice($DEV) -> HostEtherFilter($DEV:eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
kind [0] -> requests :: Tee -> ARPResponder($DEV:ip $DEV:eth) -> queue :: Queue -> ToDevice($DEV);
kind [1] -> [1] arp :: ARPQuerier($DEV:net, $DEV:eth) -> queue; requests [1] -> [1] arp;

// Out of the tunnel, to the kernel.
kind [2] -> Strip(14) -> CheckIPHeader
    -> tunnel :: IPClassifier(dst host $DEV:ip and src host $HOME and ip proto ipip, -);
tunnel [0] -> IPReassembler -> StripIPHeader -> CheckIPHeader
    -> inner :: IPClassifier(dst host mobile:ip, -);
inner [0] -> EtherEncap(0x0800, $PEERETH, $HOSTETH) -> host :: ToHost($HOST);
tunnel [1] -> nobody :: Discard;
inner [1] -> nobody;

// From the kernel, into the tunnel. The MTU of its device leaves space for the tunnel's header.
FromHost($HOST, $MOBILEIP, GATEWAY $HOMEROUTER, ETHER $HOSTETH, MTU $TUNNELMTU)
    -> own :: Classifier(12/0806 20/0001, 12/0800, -);
own [0] -> ARPResponder(0.0.0.0/0 $PEERETH) -> host;
own [1] -> Strip(14) -> CheckIPHeader -> IPEncap(ipip, $DEV:ip, $HOME)
    -> routes :: StaticIPLookup($DEV:net 0, 0.0.0.0/0 $ROUTER 0) -> IPFragmenter($MTU) -> [0] arp;
own [2] -> nobody;
