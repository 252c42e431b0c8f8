elementclass C { $a, $b input -> output }
