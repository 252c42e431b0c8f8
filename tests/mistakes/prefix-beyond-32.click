InfiniteSource(LIMIT 5) -> GetIPAddress(16) -> r :: LinearIPLookup(10.0.0.0/33 0);
r -> Discard;
