InfiniteSource(LIMIT 5) -> Counter -> uplink;
