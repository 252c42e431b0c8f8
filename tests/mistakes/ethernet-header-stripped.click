FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> IPFilter(allow udp) -> q :: Queue -> ToDevice(eth1);
