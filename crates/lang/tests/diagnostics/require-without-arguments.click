require;
a :: Idle;
