c :: Classifier(12/806, -);
InfiniteSource(LIMIT 5) -> c;
c [0] -> Discard;
c [1] -> Discard;
