elementclass Source { $length |
  InfiniteSource(LIMIT 5, LENGTH $lenght) -> output;
}
Source(60) -> Discard;
