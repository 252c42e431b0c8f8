InfiniteSource(LIMIT 5) -> GetIPAddress(16) -> r :: LookupIPRoute(10.0.0.0/255.0.255.0 0);
r -> Discard;
