InfiniteSource(LIMIT 5) -> Queue(10000000000) -> Unqueue -> Discard;
