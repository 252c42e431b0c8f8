a :: Tee; a [-1] -> Discard;
