// SPDX-License-Identifier: MIT OR Apache-2.0
// Patterns that remove ARP from links between two routers (ASPLOS 2002, section 7.2). Both routers are parts of one configuration,
// as click-combine makes it. On such a link, the Ethernet address of the next hop is always that of the other router, so an
// ARPQuerier becomes an EtherEncap.
//
// Elements of the classes AnsweredBy and NoRequests exist only while the patterns are applied. AnsweredBy(ETHER) says: all ARP
// requests that pass here are answered by a router that has this Ethernet address. NoRequests says: no ARP requests pass here.

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

// A router that sends no ARP requests: the packets in its queue come from an EtherEncap or are replies.
elementclass ARPUnasked { $own, $eth, $ip, $self, __REST__ $args |
    input -> encap :: EtherEncap(0x0800, $own, $eth) -> queue :: Queue($args) -> output;
    input [1] -> answer :: ARPResponder($ip $self) -> queue
|| $own, $eth, __REST__ $args |
    input -> encap :: EtherEncap(0x0800, $own, $eth) -> queue :: Queue($args) -> output
}
elementclass ARPUnasked_Replacement { $own, $eth, $ip, $self, __REST__ $args |
    input -> encap :: EtherEncap(0x0800, $own, $eth) -> queue :: Queue($args) -> NoRequests -> output;
    input [1] -> answer :: ARPResponder($ip $self) -> queue
|| $own, $eth, __REST__ $args |
    input -> encap :: EtherEncap(0x0800, $own, $eth) -> queue :: Queue($args) -> NoRequests -> output
}

// Elements that send no requests of their own.
elementclass ARPAhead { __REST__ $args |
    input -> NoRequests -> element :: HostEtherFilter($args) -> output
|| __REST__ $args | input -> NoRequests -> element :: Counter($args) -> output
|| __REST__ $args | input -> NoRequests -> element :: RouterLink($args) -> output
|| __REST__ $args | input -> NoRequests -> element :: Unqueue($args) -> output
|| __REST__ $args | input -> NoRequests -> element :: LinkUnqueue($args) -> output
|| __REST__ $args | input -> NoRequests -> element :: Queue($args) -> output
}
elementclass ARPAhead_Replacement { __REST__ $args |
    input -> element :: HostEtherFilter($args) -> NoRequests -> output
|| __REST__ $args | input -> element :: Counter($args) -> NoRequests -> output
|| __REST__ $args | input -> element :: RouterLink($args) -> NoRequests -> output
|| __REST__ $args | input -> element :: Unqueue($args) -> NoRequests -> output
|| __REST__ $args | input -> element :: LinkUnqueue($args) -> NoRequests -> output
|| __REST__ $args | input -> element :: Queue($args) -> NoRequests -> output
}

// The other router has nothing to answer.
elementclass ARPSilent { $ip, $eth |
    input -> NoRequests -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output
|| $ip, $eth |
    input -> NoRequests -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> answer :: ARPResponder($ip $eth) -> output; kind [1] -> [1] output; kind [2] -> [2] output;
    kind [3] -> [3] output
|| $ip, $eth |
    input -> NoRequests -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output
|| $ip, $eth |
    input -> NoRequests -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> requests :: Tee -> answer :: ARPResponder($ip $eth) -> output; requests [1] -> [1] output;
    kind [1] -> [2] output; kind [2] -> [3] output; kind [3] -> [4] output
}
elementclass ARPSilent_Replacement {
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> Discard; Idle -> output; kind [1] -> [1] output; kind [2] -> [2] output
||
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> Discard; Idle -> output; kind [1] -> [1] output; kind [2] -> [2] output; kind [3] -> [3] output
||
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind [0] -> [1] output; Idle -> output; kind [1] -> [2] output; kind [2] -> [3] output
||
    input -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    kind [0] -> [1] output; Idle -> output; kind [1] -> [2] output; kind [2] -> [3] output; kind [3] -> [4] output
}

// What is left of the class NoRequests vanishes.
elementclass ARPEnd { input -> NoRequests -> output }
elementclass ARPEnd_Replacement { input -> output }
