src :: InfiniteSource(LIMIT 5);
src Counter -> Discard;
