src :: InfiniteSource(LIMIT 5);
/* The counter stands before the queue.
src -> Counter -> Queue -> Unqueue -> Discard;
