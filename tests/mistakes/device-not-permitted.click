// castanet-unprivileged run FILE
FromDevice(lo) -> Discard;
