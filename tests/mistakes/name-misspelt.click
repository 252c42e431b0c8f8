source :: InfiniteSource(LIMIT 5);
counter :: Counter;
source -> conuter -> Discard;
counter -> Discard;
