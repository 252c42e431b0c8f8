c :: Classifier(12/0806, 12/0800);
InfiniteSource(LIMIT 5) -> c;
c [0] -> Discard;
