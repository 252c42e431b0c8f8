define($LIMIT 5);
InfiniteSource(LIMIT $LIMTI) -> Discard;
