elementclass X { input -> output }
x :: X; Idle -> [1] x; Idle -> x -> Discard;
