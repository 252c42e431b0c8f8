foo -> Discard;
foo -> Discard;
