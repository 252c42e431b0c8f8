// castanet run FILE
q :: ARPQuerier(10.0.0.1, castanet9:eth);
Idle -> q -> Discard;
Idle -> [1] q;
