require(library routing.click);
InfiniteSource(LIMIT 5) -> Discard;
