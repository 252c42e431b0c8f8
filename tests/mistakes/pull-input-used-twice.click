u :: Unqueue;
RatedSource(LIMIT 5) -> Queue -> u;
RatedSource(LIMIT 5) -> Queue -> u;
u -> Discard;
