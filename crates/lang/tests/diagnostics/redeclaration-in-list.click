a, b, a :: Idle;
