InfiniteSource(LIMIT 5, LENGTH $length) -> Discard;
