provide foo;
a :: Idle;
