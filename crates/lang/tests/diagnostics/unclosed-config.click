a :: Strip(14;
b :: Idle;
c :: Idel;
