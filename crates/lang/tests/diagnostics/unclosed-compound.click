elementclass C {
  input -> Null -> output;
Idle -> C -> Discard;
