InfiniteSource(LIMIT 5) -> Discard;
Script(label again, wait 1s, goto agian);
