a :: Print("abc);
b :: Idle;
