InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;
Script(wait 1s, write c.reset(), stop);
