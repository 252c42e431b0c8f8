a :: Tee; a [x] -> Discard;
