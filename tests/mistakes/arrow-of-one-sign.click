InfiniteSource(LIMIT 5) - Counter -> Discard;
