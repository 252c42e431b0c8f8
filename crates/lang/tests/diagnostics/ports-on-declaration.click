[0] a :: Idle [1];
