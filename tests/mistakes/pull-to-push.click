InfiniteSource(LIMIT 5) -> Queue -> Counter -> c :: Classifier(12/0800, -);
c [0] -> Discard;
c [1] -> Discard;
