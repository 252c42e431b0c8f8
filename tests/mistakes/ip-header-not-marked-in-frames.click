// A firewall between two Ethernet devices.
FromDevice(eth0) -> firewall :: IPFilter(deny tcp dst port 23, allow all) -> Queue -> ToDevice(eth1);
