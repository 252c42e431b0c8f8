// Each line has a mistake of its own.
InfiniteSource(LIMIT 5) -> Coutner -> Discard;
InfiniteSource(LIMIT 5) -> q :: Queue(-1) -> Unqueue -> Discard;
InfiniteSource(LIMTI 5) -> Queue -> Unqueue -> Discard;
InfiniteSource(LIMIT 5) -> SetIPAddress(10.0.0.256) -> Discard;
FromDevice(eth0) -> ToDevice(eth1);
