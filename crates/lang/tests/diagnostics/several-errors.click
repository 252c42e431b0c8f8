a :: Idel;
b -> Discard;
Idle -> ;
c :: Tee(;
d, e => Discard, Discard, Discard;
