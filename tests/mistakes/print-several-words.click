InfiniteSource(LIMIT 5) -> Print(got one) -> Discard;
