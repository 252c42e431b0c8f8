a :: Tee; a [99999999999] -> Discard;
