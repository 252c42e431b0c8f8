FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> DecIPTTL
    -> UDPIPEncap(10.0.0.1, 4789, 10.0.0.2, 4789)
    -> out :: Queue -> ToDevice(eth1);
