Idle -> Discard;
/*/