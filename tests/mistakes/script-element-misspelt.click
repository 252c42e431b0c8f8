InfiniteSource(LIMIT 5) -> counter :: Counter -> Discard;
Script(wait 1s, print conter.count, stop);
