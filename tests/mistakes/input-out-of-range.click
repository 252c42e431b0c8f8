InfiniteSource(LIMIT 5) -> [1] Counter -> Discard;
