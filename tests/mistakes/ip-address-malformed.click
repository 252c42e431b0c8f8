InfiniteSource(LIMIT 5) -> SetIPAddress(10.0.0.256) -> Discard;
