// SPDX-License-Identifier: MIT OR Apache-2.0
// The Ethernet switch of TOCS 2000, Figure 16 ("The Click Modular Router"), with three devices for its ports.
//
//     castanet run conf/ethernet-switch-devices.click
//     castanet run conf/ethernet-switch-devices.click DEV0=lan0 DEV1=lan1 DEV2=lan2
//
// `castanet new bridge` writes the same for any number of devices. The switch owns them: the kernel must have no address
// on them (`ip addr flush dev eth0`). conf/ethernet-switch.click is the same switch with simulated hosts and time.

define($DEV0 eth0, $DEV1 eth1, $DEV2 eth2);

// The tree opens and closes the ports of the suppressors before and after the switch.
in, out :: Suppressor;
switch :: EtherSwitch;
tree :: EtherSpanTree($DEV0:eth, in, out, switch, BRIDGE_PRIORITY 0xdead,
    FORWARD_DELAY 15, HELLO_TIME 2, MAX_AGE 20);

// A device: output 0 has messages of bridges, output 1 all other frames; input 0 has priority.
elementclass Port { $dev |
    FromDevice($dev, PROMISC true) -> kind :: Classifier(0/0180c2000000, -);
    kind [0] -> [0] output;
    kind [1] -> [1] output;
    input [0] -> Queue(50) -> [0] first :: PrioSched -> ToDevice($dev);
    input [1] -> Queue -> [1] first;
}

port0 :: Port($DEV0);
port0 [0] -> [0] tree [0] -> [0] port0;
port0 [1] -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> [1] port0;

port1 :: Port($DEV1);
port1 [0] -> [1] tree [1] -> [0] port1;
port1 [1] -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> [1] port1;

port2 :: Port($DEV2);
port2 [0] -> [2] tree [2] -> [0] port2;
port2 [1] -> [2] in [2] -> [2] switch [2] -> [2] out [2] -> [1] port2;
