a :: Tee; a [0-1] => [0-2] Discard;
