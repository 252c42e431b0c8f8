// SPDX-License-Identifier: MIT OR Apache-2.0
// Three switches as in ethernet-switch.click, in a ring: the spanning tree protocol blocks one connection, and opens it when
// another is cut.
//
//     castanet run -q --simtime conf/bridges.click
//
// prints
//
//     3 blocks its connection to 2:
//     bridge dead.02-00-00-00-00-03, root dead.02-00-00-00-00-01, cost 4
//     0 root forwarding: root dead.02-00-00-00-00-01, cost 0, bridge dead.02-00-00-00-00-01, port 8002
//     1 alternate blocking: root dead.02-00-00-00-00-01, cost 4, bridge dead.02-00-00-00-00-02, port 8001
//     2 designated forwarding: root dead.02-00-00-00-00-01, cost 4, bridge dead.02-00-00-00-00-03, port 8003
//     of 100 frames each the hosts got 101 100 100
//     after the cut, of 200 200 71 71
//     2 goes by 3:
//     bridge dead.02-00-00-00-00-02, root dead.02-00-00-00-00-01, cost 8
//     0 root forwarding: root dead.02-00-00-00-00-01, cost 4, bridge dead.02-00-00-00-00-03, port 8002
//     1 designated forwarding: root dead.02-00-00-00-00-01, cost 8, bridge dead.02-00-00-00-00-02, port 8002
//     2 designated forwarding: root dead.02-00-00-00-00-01, cost 8, bridge dead.02-00-00-00-00-02, port 8003
//     then of 100 100 100 100
//
// Switch 1 has the lowest address and becomes the root. Switches 2 and 3 are at the same distance from it. On the connection between
// them, 2 has the better identifier, so 3 blocks its port. When the connection between 1 and 2 is cut, the information of 2 expires after
// six seconds. Then 2 reaches the root by 3; listening and learning take four seconds each.

// One switch with three ports.
elementclass Switch { $address |
    in, out :: Suppressor;
    switch :: EtherSwitch;
    tree :: EtherSpanTree($address, in, out, switch, FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6);

    input [0] -> kind0 :: Classifier(0/0180c2000000, -) -> [0] tree;
    input [1] -> kind1 :: Classifier(0/0180c2000000, -) -> [1] tree;
    input [2] -> kind2 :: Classifier(0/0180c2000000, -) -> [2] tree;
    kind0 [1] -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> [0] output;
    kind1 [1] -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> [1] output;
    kind2 [1] -> [2] in [2] -> [2] switch [2] -> [2] out [2] -> [2] output;
    tree [0] -> [0] output;
    tree [1] -> [1] output;
    tree [2] -> [2] output;
}

// One direction of a wire.
elementclass Wire { input -> Queue(1000) -> Unqueue -> output; }

// A host that sends ten frames a second to another, and counts the frames that it gets.
elementclass Host { $own, $other |
    TimedSource(0.1, DATA \<88b5 0000>) -> EtherEncap(0x88b5, $own, $other) -> output;
    input -> HostEtherFilter($own) -> Classifier(12/88b5) -> heard :: Counter -> Discard;
}

s1 :: Switch(02:00:00:00:00:01);
s2 :: Switch(02:00:00:00:00:02);
s3 :: Switch(02:00:00:00:00:03);

// The ring. Suppressing a port of `cut` cuts one direction of the connection between 1 and 2.
cut :: Suppressor;
s1 [0] -> [0] cut [0] -> Wire -> [1] s2;
s2 [1] -> [1] cut [1] -> Wire -> [0] s1;
s2 [0] -> Wire -> [1] s3;
s3 [1] -> Wire -> [0] s2;
s3 [0] -> Wire -> [1] s1;
s1 [1] -> Wire -> [0] s3;

// A host at the third port of each switch; each sends to the next one in the ring.
h1 :: Host(04:00:00:00:00:01, 04:00:00:00:00:02) -> [2] s1 [2] -> h1;
h2 :: Host(04:00:00:00:00:02, 04:00:00:00:00:03) -> [2] s2 [2] -> h2;
h3 :: Host(04:00:00:00:00:03, 04:00:00:00:00:01) -> [2] s3 [2] -> h3;

reset :: Script(TYPE PASSIVE, write h1/heard.reset, write h2/heard.reset, write h3/heard.reset);

DriverManager(wait 15, print "3 blocks its connection to 2:", print s3/tree.msgs,
    write reset.run, wait 10,
    print "of 100 frames each the hosts got" $(h1/heard.count) $(h2/heard.count) $(h3/heard.count),
    write cut.active0 false, write cut.active1 false, write reset.run, wait 20,
    print "after the cut, of 200" $(h1/heard.count) $(h2/heard.count) $(h3/heard.count),
    print "2 goes by 3:", print s2/tree.msgs, write reset.run, wait 10,
    print "then of 100" $(h1/heard.count) $(h2/heard.count) $(h3/heard.count), stop);
