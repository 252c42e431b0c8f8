Idle –> Discard;
Idle — Discard;
