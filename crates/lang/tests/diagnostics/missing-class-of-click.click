// A class of Click that does not exist here is one error, however often it is used; no other name is guessed.
a :: CheckIP6Header -> Discard;
Idle -> CheckIP6Header -> b :: CheckIP6Heade -> Discard;
elementclass C { input -> CheckIP6Header -> output }
Idle -> C -> Discard;
