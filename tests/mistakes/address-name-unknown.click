AddressInfo(gateway 10.0.0.1 00:11:22:33:44:55);
InfiniteSource(LIMIT 5) -> SetIPAddress(gatewy) -> Discard;
