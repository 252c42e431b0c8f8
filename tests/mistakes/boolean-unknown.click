InfiniteSource(LIMIT 5, STOP ja) -> Discard;
