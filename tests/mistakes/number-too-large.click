InfiniteSource(LIMIT 5) -> Paint(300) -> Discard;
