InfiniteSource(LIMIT 5, LENGTH 60, LIMIT 10) -> Discard;
