InfiniteSource(LIMIT 5) -> Queue -> BandwidthShaper(10Mbit/s) -> Unqueue -> Discard;
