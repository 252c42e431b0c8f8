a :: Idle; a(5) -> Discard;
