elementclass C { $a, B | input -> output }
