elementclass Twice { input -> Counter -> Twice -> output }
InfiniteSource(LIMIT 5) -> Twice -> Discard;
