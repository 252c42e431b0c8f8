c :: Classifier(12/0800, -);
InfiniteSource(LIMIT 5) -> c;
c [0] -> Discard;
c [1] -> Discard;
c [2] -> Discard;
