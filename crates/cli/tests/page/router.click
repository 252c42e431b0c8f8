// Two lines with a shaper each. The upward line gets more packets than it can carry.
elementclass Shaper { $capacity, $rate |
    input -> q :: SimpleQueue($capacity) -> u :: RatedUnqueue($rate) -> output;
}

lan :: RatedSource(RATE 2000) -> in :: Counter -> up :: Shaper(200, 1500)
    -> wan :: Discard;
back :: RatedSource(RATE 900) -> check :: CheckLength(1500) -> down :: Shaper(100, 1000)
    -> out :: Counter -> hosts :: Discard;
check [1] -> Discard;
