elementclass Limited { $rate, $burst |
  input -> Queue(100) -> RatedUnqueue($rate, BURST_SIZE $burst) -> output
}
InfiniteSource(LIMIT 5) -> Limited(10) -> Discard;
