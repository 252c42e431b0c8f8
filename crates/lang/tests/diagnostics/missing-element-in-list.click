Idle, , Idle -> Discard;
