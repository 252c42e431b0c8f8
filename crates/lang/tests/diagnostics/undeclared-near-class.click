Idle -> Conter -> Discard;
