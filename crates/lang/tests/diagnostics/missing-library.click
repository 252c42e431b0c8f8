require(library nosuch.click);
Idle -> Discard;
