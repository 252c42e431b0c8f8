a :: ;
b :: Idle;
