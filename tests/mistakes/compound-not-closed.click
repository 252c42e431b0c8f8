elementclass Counted {
  input -> Counter -> output;
InfiniteSource(LIMIT 5) -> Counted -> Discard;
