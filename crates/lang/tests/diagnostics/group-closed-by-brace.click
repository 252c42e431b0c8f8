a :: { Idle -> ( -> Null };
