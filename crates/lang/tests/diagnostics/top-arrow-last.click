Idle -> ;
Idle -> Discard;
