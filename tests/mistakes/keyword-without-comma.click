InfiniteSource(LIMIT 5 LENGTH 60) -> Discard;
