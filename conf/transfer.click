// SPDX-License-Identifier: MIT OR Apache-2.0
// Port-to-port transfer, as in the measurements of HPSR 2005, section IV-D ("Click vs. Linux"): interfaces are connected in pairs, and
// frames that arrive by one leave by the other, uninspected, through a queue for each direction.
//
//     castanet run -q --simtime conf/transfer.click -h to0/sent.count -h to1/sent.count -h to2/sent.count -h to3/sent.count -h to3/sent.byte_count
//
// prints
//
//     to0/sent.count:
//     148800
//
//     to1/sent.count:
//     148800
//
//     to2/sent.count:
//     148800
//
//     to3/sent.count:
//     148800
//
//     to3/sent.byte_count:
//     8928000
//
// Each of four interfaces receives COUNT minimum-size frames, RATE a second, and all frames leave. A sink has the number of its
// interface. On the devices of a machine, replace `From` by `FromDevice($device, PROMISC true)` and `To` by `ToDevice($device)`;
// docs/transfer.md has the complete configuration.

define($RATE 148800, $COUNT 148800);

elementclass From { $device | RatedSource(DATA "$device", RATE $RATE, LENGTH 60, LIMIT $COUNT) -> output; }
elementclass To { $device | input -> sent :: Counter -> Discard; }

From(eth0) -> Queue -> to1 :: To(eth1);
From(eth1) -> Queue -> to0 :: To(eth0);
From(eth2) -> Queue -> to3 :: To(eth3);
From(eth3) -> Queue -> to2 :: To(eth2);

DriverManager(wait 2s, stop);
