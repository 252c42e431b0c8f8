[1] Idle -> Discard;
