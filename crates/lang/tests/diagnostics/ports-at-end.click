Idle -> Discard [1];
