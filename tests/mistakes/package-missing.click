require(package mypackage);
InfiniteSource(LIMIT 5) -> Discard;
