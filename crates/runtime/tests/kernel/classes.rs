// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations for the classes that can run in the kernel, several for each: with different arguments, and on packets in
//! different states.

/// The configurations, as those of `CLASSES`.
pub const MORE: &[&str] = &[
    // The instructions are the same before and after the write; only the point at which packets go up differs.
    "FromDevice(eth0) -> s :: Switch(1); s [0] -> Observe(a); s [1] -> Observe(b); Script(wait 0.3, write s.switch 0);",
    // Counter, AverageCounter, Null, PushNull, Align, Discard.
    "FromDevice(eth0) -> Counter -> Null -> PushNull -> Align(4, 2) -> Strip(14) -> Counter -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Counter -> Strip(20) -> Counter -> Null4 -> Discard;",
    "FromDevice(eth0) -> CompleteOffload -> AverageCounter -> Strip(14) -> AverageCounter(100000) -> Observe(a);",
    // Meter, BandwidthMeter, with rates that no time makes true.
    "FromDevice(eth0) -> Strip(3) -> m :: Meter(4000000000) -> n :: BandwidthMeter(4GBps) -> Observe(a);
     m [1] -> Observe(b); n [1] -> Observe(b);",
    "FromDevice(eth0) -> Unstrip(3) -> Counter -> Strip(5) -> Counter -> Observe(a);",
    // Switch, StaticSwitch.
    "FromDevice(eth0) -> s :: Switch(1); s [0] -> Observe(a); s [1] -> Counter -> Observe(b);
     Script(wait 0.3, write s.switch 0, wait 0.3, write s.switch -1, wait 0.3, write s.switch 7, wait 0.1, write s.switch 1);",
    "FromDevice(eth0) -> s :: StaticSwitch(1); s [0] -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c [0] -> StaticSwitch(-1) -> Observe(a); c [1] -> Observe(b);",
    // FastClassifier, for frames and for IP packets.
    "FromDevice(eth0) -> c :: FastClassifier(data 3, 12/08000000%ffff0000 14 [0] 1, 12/08060000%ffff0000 14 [1] [2]);
     c [0] -> Observe(a); c [1] -> Observe(b); c [2] -> Observe(c);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> c :: FastClassifier(ip 2, 264/00060000%00ff0000 266 [0] 1, 512/00000050%0000ffff 516 [1] [X]);
     c [0] -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> FastClassifier(data 1, [0]) -> Observe(a);",
    // CheckPaint, PaintSwitch.
    "FromDevice(eth0) -> c :: CheckPaint(0) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c [0] -> CheckPaint(1) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> GetIPAddress(26) -> c :: CheckPaint(10, 0) -> d :: CheckPaint(2, 3) -> Observe(a);
     c [1] -> Observe(b); d [1] -> Paint(9, 3) -> CheckPaint(9, 3) -> Observe(c);",
    "FromDevice(eth0) -> Paint(1) -> s :: PaintSwitch; s [0] -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(1) -> GetIPAddress(4, 0) -> s :: PaintSwitch(2); s [0] -> Observe(a); s [1] -> Observe(b);
     s [2] -> Observe(c);",
    "FromDevice(eth0) -> GetIPAddress(0, 0) -> s :: PaintSwitch(0); s [0] -> Observe(a); s [1] -> Observe(b); s [2] -> Observe(c);",
    // MarkIPHeader, MarkMACHeader, StripToNetworkHeader.
    "FromDevice(eth0) -> MarkIPHeader(14) -> StripToNetworkHeader -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> MarkIPHeader -> Strip(20) -> StripToNetworkHeader -> Observe(a);",
    "FromDevice(eth0) -> Strip(40) -> MarkIPHeader(2) -> Strip(4) -> StripToNetworkHeader -> Unstrip(9) -> Observe(a);",
    "FromDevice(eth0) -> StripToNetworkHeader -> MarkMACHeader(6, 14) -> StripToNetworkHeader -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> MarkMACHeader(2) -> Unstrip(20) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> MarkMACHeader(30, 40) -> Strip(3) -> StripToNetworkHeader -> Observe(a);",
    // Unstrip.
    "FromDevice(eth0) -> Unstrip(7) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> Unstrip(4) -> Unstrip(128) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Unstrip(1) -> Strip(15) -> DecIPTTL -> Unstrip(30) -> MarkIPHeader(30) -> Observe(a);",
    // GetIPAddress, SetIPAddress, StoreIPAddress.
    "FromDevice(eth0) -> GetIPAddress(30) -> Observe(a);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> GetIPAddress(IP src) -> Strip(20) -> GetIPAddress(IP dst, ANNO 5)
     -> GetIPAddress(60, 16) -> Observe(a);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c [0] -> GetIPAddress(IP src) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> SetIPAddress(1.2.3.4) -> SetIPAddress(5.6.7.8, ANNO 2) -> GetIPAddress(26, 3) -> SetIPAddress(9.8.7.6, ANNO 6)
     -> Observe(a);",
    "FromDevice(eth0) -> SetIPAddress(1.2.3.4) -> s :: StoreIPAddress(58) -> StoreIPAddress(9.9.9.9, 1) -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> s :: StoreIPAddress(40) -> StoreIPAddress(9.9.9.9, 60) -> Observe(a);
     s [1] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> StoreIPAddress(10.0.0.2, src) -> StoreIPAddress(10.0.1.2, dst) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> StoreIPAddress(1.2.3.4, src) -> s :: StoreIPAddress(5.6.7.8, dst) -> Observe(a);
     s [1] -> Observe(b);",
    "FromDevice(eth0) -> MarkIPHeader(14) -> Strip(34) -> SetIPAddress(255.255.255.255) -> s :: StoreIPAddress(dst) -> Observe(a);
     s [1] -> Observe(b);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c [0] -> StoreIPAddress(1.2.3.4, src) -> Observe(a); c [1] -> Observe(b);",
    // CheckLength.
    "FromDevice(eth0) -> c :: CheckLength(60) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> CheckLength(70) -> c :: CheckLength(46) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> c :: CheckLength(1000, EXTRA_LENGTH true) -> CheckLength(100000) -> GetIPAddress(14, EXTRA_LENGTH)
     -> Paint(1, 30) -> Observe(a); c [1] -> Observe(b);",
    "FromDevice(eth0) -> GetIPAddress(18, EXTRA_LENGTH) -> Paint(0, 29) -> Paint(0, 30) -> Paint(0, 31)
     -> c :: CheckLength(200, EXTRA_LENGTH true) -> Observe(a); c [1] -> Observe(b);",
    // EtherEncap, EtherRewrite, EtherMirror.
    "FromDevice(eth0) -> EtherEncap(0x88b5, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> EtherEncap(0x88b5, 2:0:0:0:0:1, ff:ff:ff:ff:ff:ff) -> Strip(28) -> DecIPTTL
     -> EtherEncap(0x0800, 1:2:3:4:5:6, 7:8:9:a:b:c) -> Observe(a);",
    "FromDevice(eth0) -> Strip(5) -> EtherEncap(0x0800, 1:2:3:4:5:6, 7:8:9:a:b:c) -> Strip(14) -> Unstrip(20) -> Observe(a);",
    "FromDevice(eth0) -> EtherRewrite(1:2:3:4:5:6, 7:8:9:a:b:c) -> Strip(13) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(30) -> EtherRewrite(1:2:3:4:5:6, 7:8:9:a:b:c) -> Unstrip(12) -> Observe(a);",
    "FromDevice(eth0) -> Strip(40) -> EtherRewrite(1:2:3:4:5:6, 7:8:9:a:b:c) -> EtherMirror -> Observe(a);",
    "FromDevice(eth0) -> EtherMirror -> Observe(a);",
    "FromDevice(eth0) -> Strip(15) -> EtherMirror -> Unstrip(3) -> EtherMirror -> Observe(a);",
    // StoreEtherAddress, GetEtherAddress, SetEtherAddress.
    "FromDevice(eth0) -> StoreEtherAddress(1:2:3:4:5:6, src) -> s :: StoreEtherAddress(7:8:9:a:b:c, 60) -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> GetEtherAddress(40, src) -> g :: GetEtherAddress(9, 57) -> StoreEtherAddress(OFFSET dst, ANNO 9)
     -> StoreEtherAddress(OFFSET 7, ANNO 40) -> Observe(a); g [1] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> SetEtherAddress(1:2:3:4:5:6, 17) -> GetEtherAddress(21, 30)
     -> SetEtherAddress(7:8:9:a:b:c, 23) -> StoreEtherAddress(OFFSET 1, ANNO 17) -> Observe(a);",
    "FromDevice(eth0) -> SetEtherAddress(1:2:3:4:5:6, 40) -> StoreEtherAddress(OFFSET dst, ANNO 40) -> Observe(a);",
    // VLANEncap, VLANDecap, StripEtherVLANHeader, EtherVLANEncap, SetVLANAnno.
    "FromDevice(eth0) -> VLANDecap -> VLANEncap(ANNO) -> Observe(a);",
    "FromDevice(eth0) -> VLANDecap(false) -> Strip(14) -> Observe(a);",
    "FromDevice(eth0) -> VLANDecap(ETHERTYPE 0x0800) -> VLANEncap(VLAN_ID 7, VLAN_PCP 5, ETHERTYPE 0x88a8) -> Observe(a);",
    "FromDevice(eth0) -> VLANDecap -> VLANEncap(VLAN_TCI ANNO, VLAN_PCP 3, NATIVE_VLAN 7) -> VLANEncap(VLAN_ID 7, NATIVE_VLAN 7) -> Observe(a);",
    "FromDevice(eth0) -> VLANDecap -> VLANEncap(ANNO, NATIVE_VLAN -1) -> CheckIPHeader(18) -> VLANDecap -> CheckIPHeader(14) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> VLANEncap(VLAN_ID 9) -> Strip(18) -> VLANEncap(VLAN_ID 10) -> Observe(a);",
    "FromDevice(eth0) -> SetVLANAnno(VLAN_ID 100, VLAN_PCP 2) -> VLANEncap(ANNO) -> Observe(a);",
    "FromDevice(eth0) -> SetVLANAnno(0x1fff) -> GetIPAddress(26, 16) -> SetVLANAnno(VLAN_ID 0) -> VLANEncap(ANNO) -> Observe(a);",
    "FromDevice(eth0) -> SetVLANAnno(0xffff) -> VLANEncap(VLAN_TCI ANNO, VLAN_PCP 3) -> VLANEncap(ANNO, NATIVE_VLAN 4095) -> Observe(a);",
    "FromDevice(eth0) -> s :: StripEtherVLANHeader -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> s :: StripEtherVLANHeader(-1) -> CheckIPHeader -> Observe(a); s [1] -> Observe(b);",
    "FromDevice(eth0) -> StripEtherVLANHeader(5) -> Strip(3) -> StripEtherVLANHeader(9) -> Observe(a);",
    "FromDevice(eth0) -> StripEtherVLANHeader(5) -> EtherVLANEncap(0x0800, 1:2:3:4:5:6, 7:8:9:a:b:c, ANNO, NATIVE_VLAN 5) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(3) -> EtherVLANEncap(0x0800, 1:2:3:4:5:6, 7:8:9:a:b:c, VLAN_ID 5, VLAN_PCP 1)
     -> EtherVLANEncap(0x0806, 1:2:3:4:5:6, 7:8:9:a:b:c, VLAN_ID 0) -> Observe(a);",
    // SetIPDSCP, SetIPECN, MarkIPCE, SetIPChecksum, IPMirror.
    "FromDevice(eth0) -> MarkIPHeader(14) -> SetIPDSCP(46) -> Strip(40) -> SetIPECN(ect2) -> Observe(a);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> SetIPDSCP(0) -> MarkIPCE -> SetIPDSCP(63) -> SetIPECN(no) -> Observe(a);",
    "FromDevice(eth0) -> MarkIPHeader(14) -> MarkIPCE(true) -> SetIPChecksum -> Observe(a);",
    "FromDevice(eth0) -> MarkMACHeader(0, 40) -> SetIPECN(ect1) -> SetIPChecksum -> MarkIPCE -> Observe(a);",
    "FromDevice(eth0) -> MarkIPHeader(14) -> Strip(18) -> StoreIPAddress(9.9.9.9, 8) -> SetIPChecksum -> StripToNetworkHeader
     -> CheckIPHeader -> Observe(a);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, 12/0806, 12/86dd, 12/8100, -); c [0] -> SetIPECN(ect1) -> Observe(a);
     c [1] -> MarkIPCE -> Observe(a); c [2] -> SetIPChecksum -> Observe(a); c [3] -> IPMirror -> Observe(a); c [4] -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> IPMirror -> Strip(14) -> Observe(a);",
    "FromDevice(eth0) -> MarkIPHeader(14) -> Strip(36) -> IPMirror(false) -> Observe(a);",
    "FromDevice(eth0) -> MarkMACHeader(0, 40) -> IPMirror -> Observe(a);",
    // IPInputCombo, IPOutputCombo.
    "FromDevice(eth0) -> IPInputCombo(3) -> Observe(a);",
    "FromDevice(eth0) -> IPInputCombo(2, 10.0.1.2, VERBOSE true) -> o :: IPOutputCombo(3, 10.0.0.1, 1500) -> Observe(a);
     o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b);",
    "FromDevice(eth0) -> HostEtherFilter(2:0:0:0:0:0, false, false) -> IPInputCombo(2, INTERFACES 10.0.0.1/24)
     -> o :: IPOutputCombo(1, 10.0.0.1, 60, FRAGMENT true) -> Observe(a);
     o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b); o [5] -> Observe(c);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(30) -> GetIPAddress(0, 16) -> o :: IPOutputCombo(1, 10.0.0.1, 100) -> Observe(a);
     o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b);",
    // HashSwitch.
    "FromDevice(eth0) -> h :: HashSwitch(26, 8); h [0] -> Observe(a); h [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(20) -> h :: HashSwitch(0, 64) -> Observe(a); h [1] -> Observe(b); h [2] -> Observe(c);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(14) -> h :: HashSwitch(20, 30) -> Observe(a); h [1] -> Observe(b);
     h [2] -> Observe(c); h [3] -> Observe(c);",
];

/// Configurations of which the class in the kernel has some packets at user level too.
pub const BOTH: &[&str] = &[
    // PrioSched: the data pass it in the kernel only if the other inputs are rare.
    "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> ToDevice(eth1); Idle -> Queue -> [0] p; FromDevice(eth1) -> Observe(a);",
    "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> ToDevice(eth1); FromDevice(eth1) -> Queue -> [0] p;",
    "FromDevice(eth0) -> Queue -> [0] p :: PrioSched -> Unqueue -> Observe(a); FromDevice(eth1) -> Queue -> ToDevice(eth0);
     Idle -> Queue -> [1] p;",
    // IPReassembler.
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> r :: IPReassembler -> Observe(a); r [1] -> Observe(b);",
    "FromDevice(eth0) -> IPReassembler -> Observe(a); FromDevice(eth1) -> CheckIPHeader(14) -> IPReassembler -> Observe(b);",
    // Suppressor.
    "FromDevice(eth0) -> [0] s :: Suppressor -> Observe(a); FromDevice(eth1) -> [1] s [1] -> Observe(b);
     Script(wait 0.3, write s.active0 false, wait 0.3, write s.active0 true, write s.active1 false);",
    // RoundRobinSwitch: frames that came up before take turns with those in the kernel.
    "FromDevice(eth0) -> r :: RoundRobinSwitch -> Observe(a); r [1] -> Observe(b); r [2] -> Observe(c);
     FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) -> r;",
];

/// Configurations in which the times of packets matter. The clock of the real kernel is not that of the simulated one.
pub const TIMED: &[&str] = &[
    // AverageCounter: packets in the kernel and at user level.
    "FromDevice(eth0) -> a :: AverageCounter(1) -> Observe(a);
     FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) -> a; Script(wait 0.2, write a.reset);",
    // Meter, BandwidthMeter: about 1000 packets a second, most of them in the kernel.
    "FromDevice(eth0) -> m :: Meter(850, 900) -> Observe(a); m [1] -> Observe(b); m [2] -> Observe(c);",
    "FromDevice(eth0) -> m :: Meter(400, 900) -> Observe(a); m [1] -> Observe(b); m [2] -> Observe(c);
     FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) -> m;",
    "FromDevice(eth0) -> Strip(14) -> m :: BandwidthMeter(560kbps, 640kbps) -> Observe(a); m [1] -> Observe(b);
     m [2] -> Observe(c); FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) -> m;",
];

/// Configurations in which all frames come up.
pub const ALL_UP: &[&str] = &[
    "FromDevice(eth0) -> IPInputCombo(2, 10.0.1.2, VERBOSE true) -> o :: IPOutputCombo(2, 10.0.0.1, 1500) -> Observe(a);
     o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b);",
    "FromDevice(eth0) -> Counter -> Counter(COUNT_CALL 100 c.reset) -> Observe(a); Idle -> c :: Counter -> Discard;",
    "FromDevice(eth0) -> Unstrip(129) -> Observe(a); FromDevice(eth1) -> Observe(b);",
    "FromDevice(eth0) -> CheckIPHeader(14) -> Strip(40) -> o :: IPOutputCombo(1, 10.0.0.1, 10) -> Observe(a);
     o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b);",
    "FromDevice(eth0) -> Counter(BYTE_COUNT_CALL 1000000000 stop) -> Observe(a); FromDevice(eth1) -> HashSwitch(0, 65) -> Observe(b);",
];
