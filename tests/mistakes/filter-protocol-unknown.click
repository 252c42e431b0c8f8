InfiniteSource(LIMIT 5) -> IPFilter(allow ip proto ospff, deny all) -> Discard;
