elementclass X { Idle || ... }
