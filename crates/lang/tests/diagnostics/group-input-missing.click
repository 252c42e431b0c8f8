Idle, Idle => ([1] -> Discard; [2] -> Discard);
