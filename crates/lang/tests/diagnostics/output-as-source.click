{ output -> Discard };
