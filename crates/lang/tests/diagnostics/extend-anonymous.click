{ Idle || ... };
