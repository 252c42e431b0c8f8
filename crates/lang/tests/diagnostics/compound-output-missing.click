elementclass C { Idle -> [2] output; Idle -> output }
