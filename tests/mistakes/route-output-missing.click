InfiniteSource(LIMIT 5) -> GetIPAddress(16) -> r :: RadixIPLookup(10.0.0.0/8 0, 0.0.0.0/0 10.0.0.1 1);
r [0] -> Discard;
