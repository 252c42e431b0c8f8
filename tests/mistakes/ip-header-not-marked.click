FromDevice(eth0) -> Strip(14) -> rw :: IPRewriter(pattern 1.0.0.1 - - - 0 0) -> Discard;
