elementclass X { $a, $b | input -> Strip($a) -> output }

Idle -> X(1) -> Discard;
