InfiniteSource(LIMIT 5) -> Strip(14, 20) -> Discard;
