InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;
Script(wait 1s, print c.count; stop);
