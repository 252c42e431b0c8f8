ControlSocket(TCP, 99999);
Idle -> Discard;
