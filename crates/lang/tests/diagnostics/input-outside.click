Idle -> output;
