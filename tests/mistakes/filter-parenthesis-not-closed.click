c :: IPClassifier((tcp or udp and dst port 53, -);
InfiniteSource(LIMIT 5) -> c;
c [0] -> Discard;
c [1] -> Discard;
