FromDevice(eth0) -> c :: Classifier(12/0806, 12/0800, -);
c [0] -> Strip(14) -> CheckIPHeader -> Discard;
c [1] -> Discard;
c [2] -> Discard;
