InfiniteSource(LIMIT 5) -> Queue -> DelayShaper(5 milliseconds) -> Unqueue -> Discard;
