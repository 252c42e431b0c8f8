InfiniteSource(LIMIT 5) -> CheckIP6Header -> Discard;
