c : Counter;
InfiniteSource(LIMIT 5) -> c -> Discard;
