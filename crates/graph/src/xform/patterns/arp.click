// SPDX-License-Identifier: MIT OR Apache-2.0
// Patterns that remove ARP from links between two routers (ASPLOS 2002, section 7.2). Both routers are parts of one configuration,
// as click-combine makes it. On such a link, the Ethernet address of the next hop is always that of the other router, so an
// ARPQuerier becomes an EtherEncap.
//
// Elements of the class AnsweredBy exist only while the patterns are applied. AnsweredBy(ETHER) says: all ARP requests that
// pass here are answered by a router that has this Ethernet address.

// A router that answers ARP requests. Its Classifier may have a pattern for all other packets, and its requests may also go to an
// ARPQuerier, by a Tee.
elementclass ARPAnswers { $ip, $eth |
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output
|| $ip, $eth |
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output;
    kind [3] -> [3] output
|| $ip, $eth |
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output
|| $ip, $eth |
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output; kind [3] -> [4] output
}
elementclass ARPAnswers_Replacement { $ip, $eth |
    input -> AnsweredBy($eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output
|| $ip, $eth |
    input -> AnsweredBy($eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output;
    kind [3] -> [3] output
|| $ip, $eth |
    input -> AnsweredBy($eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output
|| $ip, $eth |
    input -> AnsweredBy($eth) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output; kind [3] -> [4] output
}

// Elements that pass all packets on, or at least those for the router behind them: what is known behind such an element is also
// known before it. A RouterLink is a link that click-combine has made; in one configuration without it, an Unqueue takes its
// place.
elementclass ARPBehind { $eth, __REST__ $args |
    input -> element :: HostEtherFilter($args) -> AnsweredBy($eth) -> output
|| $eth, __REST__ $args | input -> element :: Counter($args) -> AnsweredBy($eth) -> output
|| $eth, __REST__ $args | input -> element :: RouterLink($args) -> AnsweredBy($eth) -> output
|| $eth, __REST__ $args | input -> element :: Unqueue($args) -> AnsweredBy($eth) -> output
|| $eth, __REST__ $args | input -> element :: LinkUnqueue($args) -> AnsweredBy($eth) -> output
|| $eth, __REST__ $args | input -> element :: Queue($args) -> AnsweredBy($eth) -> output
}
elementclass ARPBehind_Replacement { $eth, __REST__ $args |
    input -> AnsweredBy($eth) -> element :: HostEtherFilter($args) -> output
|| $eth, __REST__ $args | input -> AnsweredBy($eth) -> element :: Counter($args) -> output
|| $eth, __REST__ $args | input -> AnsweredBy($eth) -> element :: RouterLink($args) -> output
|| $eth, __REST__ $args | input -> AnsweredBy($eth) -> element :: Unqueue($args) -> output
|| $eth, __REST__ $args | input -> AnsweredBy($eth) -> element :: LinkUnqueue($args) -> output
|| $eth, __REST__ $args | input -> AnsweredBy($eth) -> element :: Queue($args) -> output
}

// The other router. Its ARP requests may leave on an output of their own, and packets that get no answer on a third one.
elementclass ARPKnown { $ip, $own, $eth, __REST__ $rest |
    input -> arp :: ARPQuerier($ip, $own, $rest) -> next :: AnsweredBy($eth) -> output; input [1] -> [1] arp;
    input [2] -> next
|| $ip, $own, $eth, __REST__ $rest |
    input -> arp :: ARPQuerier($ip, $own, $rest) -> next :: AnsweredBy($eth) -> output; input [1] -> [1] arp;
    input [2] -> next; arp [1] -> next
|| $ip, $own, $eth, __REST__ $rest |
    input -> arp :: ARPQuerier($ip, $own, $rest) -> next :: AnsweredBy($eth) -> output; input [1] -> [1] arp;
    input [2] -> next; arp [1] -> next; arp [2] -> [1] output
}
elementclass ARPKnown_Replacement { $ip, $own, $eth, __REST__ $rest |
    input -> arp :: EtherEncap(0x0800, $own, $eth) -> next :: AnsweredBy($eth) -> output; input [1] -> Discard;
    input [2] -> next
|| $ip, $own, $eth, __REST__ $rest |
    input -> arp :: EtherEncap(0x0800, $own, $eth) -> next :: AnsweredBy($eth) -> output; input [1] -> Discard;
    input [2] -> next
|| $ip, $own, $eth, __REST__ $rest |
    input -> arp :: EtherEncap(0x0800, $own, $eth) -> next :: AnsweredBy($eth) -> output; input [1] -> Discard;
    input [2] -> next; Idle -> [1] output
}

// What is left of the class AnsweredBy vanishes.
elementclass ARPDone { $eth | input -> AnsweredBy($eth) -> output }
elementclass ARPDone_Replacement { input -> output }
