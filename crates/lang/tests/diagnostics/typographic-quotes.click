a :: Idle;
“x” -> Discard;
