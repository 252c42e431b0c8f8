InfiniteSource(LIMIT 5) -> Print("before the queue) -> Queue -> Unqueue -> Discard;
