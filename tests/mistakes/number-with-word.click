InfiniteSource(LIMIT five) -> Discard;
