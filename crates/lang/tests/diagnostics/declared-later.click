Idle -> q;
q :: Queue -> Discard;
