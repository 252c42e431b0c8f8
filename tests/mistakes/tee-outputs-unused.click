InfiniteSource(LIMIT 5) -> t :: Tee(3);
t [0] -> Discard;
t [1] -> Discard;
