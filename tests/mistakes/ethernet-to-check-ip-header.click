source :: FromDevice(eth0);
source -> Paint(1) -> check :: CheckIPHeader(INTERFACES 10.0.0.1/24) -> Discard;
