InfiniteSource(LIMIT 5) -> Queue(-100) -> Unqueue -> Discard;
