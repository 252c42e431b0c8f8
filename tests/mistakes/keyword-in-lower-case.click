InfiniteSource(limit 5) -> Discard;
