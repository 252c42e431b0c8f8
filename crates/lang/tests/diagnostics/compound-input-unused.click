elementclass X { input -> Discard; input [1] -> Discard }
Idle -> x :: X;
