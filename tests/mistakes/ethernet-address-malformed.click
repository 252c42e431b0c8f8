InfiniteSource(LIMIT 5) -> EtherEncap(0x0800, 00:11:22:33:44, 00:11:22:33:44:55) -> Discard;
