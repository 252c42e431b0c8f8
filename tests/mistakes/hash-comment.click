# A source and a sink.
InfiniteSource(LIMIT 5) -> Discard;
