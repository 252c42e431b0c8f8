Idle -> Discard;
​Idle -> Discard;
