elementclass C { input [1] -> Discard }
Idle -> [1] C;
