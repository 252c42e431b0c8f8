InfiniteSource(LIMIT 5) -> q :: Queue -> Unqueue -> RED(5, 10, 0.5, QUEUES qq) -> Discard;
