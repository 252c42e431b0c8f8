Idle -> -> Discard;
