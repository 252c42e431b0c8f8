InfiniteSource(LIMIT 5) -> r :: StaticIPLookup(10.0.0.0/8 0 10.0.0.1);
r -> Discard;
