a :: Tee; a [0,] -> Discard;
