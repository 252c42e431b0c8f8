// SPDX-License-Identifier: MIT OR Apache-2.0
// The Ethernet switch of TOCS 2000, Figure 16: a learning bridge that takes part in the spanning tree protocol. Both ends of one
// cable are plugged into it: without the tree each broadcast would circulate without end.
//
//     castanet run -q --simtime conf/ethernet-switch.click
//
// prints
//
//     the tree:
//     bridge dead.02-00-00-00-00-01, root dead.02-00-00-00-00-01, cost 0
//     0 designated forwarding: root dead.02-00-00-00-00-01, cost 0, bridge dead.02-00-00-00-00-01, port 8001
//     1 designated forwarding: root dead.02-00-00-00-00-01, cost 0, bridge dead.02-00-00-00-00-01, port 8002
//     2 designated forwarding: root dead.02-00-00-00-00-01, cost 0, bridge dead.02-00-00-00-00-01, port 8003
//     3 alternate blocking: root dead.02-00-00-00-00-01, cost 0, bridge dead.02-00-00-00-00-01, port 8003
//     stations and their ports:
//     04-00-00-00-00-0A 0
//     04-00-00-00-00-0B 1
//     of 200 frames a heard 121 and b 121
//
// Messages of bridges go to the tree, all other frames through both suppressors and the switch. The tree closes ports of the
// suppressors. Port 3 receives messages of port 2 on the same cable and blocks. The hosts receive each other's frames when their ports
// forward, after two forward delays, which are eight seconds here.
//
// With devices, port N begins with FromDevice(ethN, PROMISC true) and ends with Queue -> ToDevice(ethN).

in, out :: Suppressor;
switch :: EtherSwitch;
tree :: EtherSpanTree(02:00:00:00:00:01, in, out, switch, FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6);

// A host that sends ten frames a second to another, and counts the frames to its own address.
elementclass Host { $own, $other |
    TimedSource(0.1) -> EtherEncap(0x88b5, $own, $other) -> output;
    input -> HostEtherFilter($own) -> Classifier(12/88b5) -> heard :: Counter -> Discard;
}
a :: Host(04:00:00:00:00:0a, 04:00:00:00:00:0b);
b :: Host(04:00:00:00:00:0b, 04:00:00:00:00:0a);

// Ports 0 and 1 have a host each; one cable has its ends in ports 2 and 3.
a -> kind0 :: Classifier(0/0180c2000000, -) -> [0] tree [0] -> a;
b -> kind1 :: Classifier(0/0180c2000000, -) -> [1] tree [1] -> b;
kind2 :: Classifier(0/0180c2000000, -) -> [2] tree [2] -> there :: Queue;
kind3 :: Classifier(0/0180c2000000, -) -> [3] tree [3] -> back :: Queue;
there -> Unqueue -> kind3;
back -> Unqueue -> kind2;

kind0 [1] -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> a;
kind1 [1] -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> b;
kind2 [1] -> [2] in [2] -> [2] switch [2] -> [2] out [2] -> there;
kind3 [1] -> [3] in [3] -> [3] switch [3] -> [3] out [3] -> back;

DriverManager(wait 20, print "the tree:", print tree.msgs, print "stations and their ports:", print switch.table,
    print "of 200 frames a heard" $(a/heard.count) "and b" $(b/heard.count), stop);
