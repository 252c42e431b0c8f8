a :: Idle; b :: Idle;
