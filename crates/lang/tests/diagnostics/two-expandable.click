a, b :: Tee; a [] => [] b;
