InfiniteSource(LIMIT 5) -> Discard;
Script(wait 5x, stop);
