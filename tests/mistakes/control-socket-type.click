ControlSocket(tpc, 7777);
Idle -> Discard;
