InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;
Script(wiat 1s, print c.count, stop);
