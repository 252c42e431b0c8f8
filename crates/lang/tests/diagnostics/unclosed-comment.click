Idle -> Discard; /* the rest
Idle -> Discard;
