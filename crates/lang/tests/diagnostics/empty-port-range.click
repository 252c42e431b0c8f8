a :: Tee; a [3-1] => Discard;
