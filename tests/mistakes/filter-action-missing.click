InfiniteSource(LIMIT 5) -> IPFilter(tcp dst port 80, deny all) -> Discard;
