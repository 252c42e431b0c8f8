a/b :: Idle; a :: { b :: Idle };
