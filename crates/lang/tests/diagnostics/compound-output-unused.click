elementclass X { Idle -> output }
x :: X;
