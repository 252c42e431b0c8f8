InfiniteSource(LIMTI 5) -> Discard;
