elementclass Counted { input -> Counter -> Discard }
InfiniteSource(LIMIT 5) -> Counted -> Discard;
