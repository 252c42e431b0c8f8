InfiniteSource(LIMIT 5) -> out;
out :: Discard;
