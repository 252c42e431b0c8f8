InfiniteSource(LIMIT 5) -> c :: Coutner -> Discard;
