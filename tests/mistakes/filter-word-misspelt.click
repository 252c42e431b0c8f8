InfiniteSource(LIMIT 5) -> IPFilter(allow tpc, deny all) -> Discard;
