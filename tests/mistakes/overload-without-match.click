elementclass Limited { $rate | input -> Queue -> RatedUnqueue($rate) -> output || $rate, $n | input -> Queue($n) -> RatedUnqueue($rate) -> output }
InfiniteSource(LIMIT 5) -> Limited(10, 20, 30) -> Discard;
