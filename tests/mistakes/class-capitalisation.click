InfiniteSource(LIMIT 5) -> QUEUE -> Unqueue -> Discard;
