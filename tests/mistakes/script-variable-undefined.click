InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;
Script(set count $(c.count), print $cuont, stop);
