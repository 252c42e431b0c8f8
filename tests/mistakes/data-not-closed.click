src :: InfiniteSource(DATA \<0001);
q :: Queue(100);
src -> q -> Unqueue -> Discard;
