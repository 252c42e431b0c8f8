Idle -> (-> Null ->) (5) -> Discard;
