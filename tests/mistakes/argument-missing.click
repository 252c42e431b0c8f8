InfiniteSource(LIMIT 5) -> Strip -> Discard;
