// castanet run FILE
FromDevice(castanet9) -> Discard;
