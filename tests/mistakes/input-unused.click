q :: Queue(100);
q -> Unqueue -> Discard;
