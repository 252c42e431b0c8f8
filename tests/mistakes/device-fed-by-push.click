FromDevice(eth0) -> Counter -> ToDevice(eth1);
