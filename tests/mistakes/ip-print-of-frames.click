FromDevice(eth0) -> IPPrint(in) -> Discard;
