src :: InfiniteSource(LIMIT 5);
src -> counter -> Discard;
