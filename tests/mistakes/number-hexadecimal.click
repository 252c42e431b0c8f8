InfiniteSource(LIMIT 5) -> SetIPDSCP(2e) -> Discard;
