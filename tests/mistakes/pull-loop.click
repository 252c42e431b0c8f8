InfiniteSource(LIMIT 5) -> Queue -> s :: RoundRobinSched -> Unqueue -> Discard;
s -> Null -> [1] s;
