elementclass { Idle };
a :: Idle;
