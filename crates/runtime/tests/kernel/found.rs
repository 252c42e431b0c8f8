// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small configurations with uncommon states of packets and of devices, in which programs have differed from elements.

/// The configurations, as those of `CLASSES`.
pub const FOUND: &[&str] = &[
    // The first byte of a marked IP header changes.
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> VLANEncap(VLAN_ID 9) -> o :: IPGWOptions(10.0.0.1) -> Observe(a);
     o [1] -> Observe(b);",
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> EtherRewrite(1:2:3:4:5:6, 47:1:1:1:1:1) -> o :: IPOutputCombo(1, 10.0.0.1, 1500)
     -> Observe(a); o [1] -> Observe(b); o [2] -> Observe(b); o [3] -> Observe(b); o [4] -> Observe(b);",
    // The network header is marked, but not its length.
    "FromDevice(eth0) -> MarkMACHeader(0, 14) -> c :: IPClassifier(tcp dst port 80, tcp, -); c [0] -> Observe(a); c [1] -> Observe(b);
     c [2] -> Observe(c);",
    // Devices to which packets go at user level.
    "FromDevice(eth0) -> Counter -> Queue -> ToDevice(eth1, METHOD PACKET);",
    "FromDevice(eth0) -> Queue -> t :: ToDevice(eth1) -> Observe(sent);",
    "FromDevice(eth0) -> Strip(14) -> Queue -> t :: ToDevice(eth1) -> Observe(sent); t [1] -> Observe(unsent);",
    // Few routes, which become comparisons.
    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> r :: DirectIPLookup(10.0.0.0/24 0, 10.0.1.0/24 1, 10.0.1.2/32 9.9.9.9 0);
     r [0] -> Observe(a); r [1] -> Observe(b);",
    // A test that needs a byte, whatever its value.
    "FromDevice(eth0) -> c :: Classifier(70/??, 12/0800 61/?0%00, -); c [0] -> Observe(a); c [1] -> Observe(b); c [2] -> Observe(c);",
    // Packets that are too short to be sent.
    "FromDevice(eth0) -> Strip(14) -> Queue -> ToDevice(eth1);",
];
