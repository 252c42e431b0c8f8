src :: InfiniteSource(LIMIT 5;
q :: Queue(100);
src -> q -> Unqueue -> Discard;
