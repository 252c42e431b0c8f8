a :: Idle;
a :: Discard;
