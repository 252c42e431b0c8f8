elementclass Sourced { InfiniteSource(LIMIT 5) -> output }
InfiniteSource(LIMIT 5) -> Sourced -> Discard;
