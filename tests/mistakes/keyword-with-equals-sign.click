InfiniteSource(LIMIT=5) -> Discard;
