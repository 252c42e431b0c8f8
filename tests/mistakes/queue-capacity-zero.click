InfiniteSource(LIMIT 5, STOP true) -> Queue(0) -> Unqueue -> Discard;
