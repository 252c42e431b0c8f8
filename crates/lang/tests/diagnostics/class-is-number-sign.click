a :: -> Discard;
