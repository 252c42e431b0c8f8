FromDump(/dev/null) -> c :: Classifier(12/0800, -);
c [0] -> Unqueue -> Discard;
c [1] -> Discard;
