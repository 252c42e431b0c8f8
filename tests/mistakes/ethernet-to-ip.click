FromDevice(eth0) -> c :: Counter -> ttl :: DecIPTTL -> Queue -> Unqueue -> Discard;
