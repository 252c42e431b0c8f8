q :: Queue(100);
q :: Queue(200);
InfiniteSource(LIMIT 5) -> q -> Unqueue -> Discard;
