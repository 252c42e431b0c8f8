Idle -> [2] (-> Discard);
