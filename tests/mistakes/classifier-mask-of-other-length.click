c :: Classifier(12/0806%ff, -);
InfiniteSource(LIMIT 5) -> c;
c [0] -> Discard;
c [1] -> Discard;
