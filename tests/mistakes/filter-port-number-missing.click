InfiniteSource(LIMIT 5) -> IPFilter(allow tcp && dst port, deny all) -> Discard;
