a :: {
  input -> Null -> q :: Queue;
  -> Null -> output
};
Idle -> a -> Discard;
